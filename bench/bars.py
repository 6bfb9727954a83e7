"""A chart of horizontal bars as an SVG, for pages of docs/."""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

_WIDTH, _LABELS, _ROW, _GAP, _MARGIN = 760, 230, 16, 12, 12
_VALUES = 120  # room behind the longest bar, for its text
_INK, _PAPER, _LINE = "#333333", "#ffffff", "#999999"


@dataclass(frozen=True, slots=True)
class Bar:
    """`value` decides the length; `text` stands behind the bar."""

    value: float
    text: str
    colour: str


@dataclass(frozen=True, slots=True)
class Cluster:
    """Bars that belong to one label."""

    label: str
    bars: tuple[Bar, ...]


def chart(title: str, clusters: Sequence[Cluster], legend: Sequence[tuple[str, str]], mark: float) -> str:
    """An SVG of all clusters, with a line at the value `mark`. `legend`: pairs of text and colour."""
    longest = max(bar.value for cluster in clusters for bar in cluster.bars)
    scale = (_WIDTH - _LABELS - _VALUES) / longest
    parts = [_text(_MARGIN, _MARGIN + 12, title, weight="bold")]
    at = _MARGIN + 22
    for number, (text, colour) in enumerate(legend):
        left = _LABELS + number * 165
        parts += [_box(left, at, 10, 10, colour), _text(left + 15, at + 9, text)]
    top = at = at + 24
    for cluster in clusters:
        parts.append(_text(_MARGIN, at + _ROW * len(cluster.bars) / 2 + 4, cluster.label))
        for bar in cluster.bars:
            length = bar.value * scale
            parts += [
                _box(_LABELS, at + 1, length, _ROW - 2, bar.colour),
                _text(_LABELS + length + 5, at + 12, bar.text),
            ]
            at += _ROW
        at += _GAP
    x = _LABELS + mark * scale
    parts.append(
        f'<line x1="{x:.1f}" y1="{top - 4}" x2="{x:.1f}" y2="{at - _GAP + 4}" stroke="{_LINE}" stroke-dasharray="4 3"/>'
    )
    height = at - _GAP + _MARGIN
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" width="{_WIDTH}" height="{height}"'
        ' font-family="sans-serif" font-size="12">'
    )
    return "\n".join([head, _box(0, 0, _WIDTH, height, _PAPER), *parts, "</svg>"]) + "\n"


def _box(x: float, y: float, width: float, height: float, colour: str) -> str:
    return f'<rect x="{x}" y="{y}" width="{width:.1f}" height="{height}" fill="{colour}"/>'


def _text(x: float, y: float, text: str, weight: str = "normal") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" fill="{_INK}" font-weight="{weight}">{escape(text)}</text>'
