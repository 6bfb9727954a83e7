"""What a request asks of an S3 server. Buckets are the first part of the path."""

from enum import StrEnum
from urllib.parse import parse_qs, unquote, urlsplit

from tests.world.s3.messages import Request


class Kind(StrEnum):
    """Kinds of requests, as they are billed and as they fail."""

    GET = "get"
    HEAD = "head"
    LIST = "list"
    PUT = "put"
    COPY = "copy"
    DELETE = "delete"
    DELETE_MANY = "delete many"
    UPLOAD = "upload"
    """All of a multipart upload but its end."""
    COMPLETE = "complete"
    """The end of a multipart upload, which makes the object."""
    OTHER = "other"


def key_of(request: Request) -> str:
    """The object that a request names; of a list, the prefix."""
    parts = urlsplit(request.target)
    key = unquote(parts.path).lstrip("/").partition("/")[2]
    return key or parse_qs(parts.query).get("prefix", [""])[0]


def kind_of(request: Request) -> Kind:
    """Its kind."""
    parts = urlsplit(request.target)
    asked = parse_qs(parts.query, keep_blank_values=True)
    if "uploads" in asked or "uploadId" in asked:
        return Kind.COMPLETE if request.method == "POST" and "uploadId" in asked else Kind.UPLOAD
    if not parts.path.strip("/").partition("/")[2]:
        return _of_a_bucket(request.method, set(asked))
    match request.method:
        case "GET" | "HEAD" | "DELETE":
            return Kind(request.method.lower())
        case "PUT":
            return Kind.COPY if request.has("x-amz-copy-source") else Kind.PUT
    return Kind.OTHER


def _of_a_bucket(method: str, asked: set[str]) -> Kind:
    if method == "POST" and "delete" in asked:
        return Kind.DELETE_MANY
    return Kind.LIST if method == "GET" and asked & {"list-type", "prefix", "delimiter"} else Kind.OTHER
