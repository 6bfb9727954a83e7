"""`catchment serve`: streams of feeds over the network, until SIGTERM or Ctrl-C."""

from pathlib import Path

import click

from catchment.cli.log import current_log, log_options
from catchment.cli.signals import stopped_by_signals
from catchment.config import ServeConfig, load_server

_LOOK_SECONDS = 0.5


@click.command(name="serve")
@click.argument("file", metavar="SERVE.yaml", type=click.Path(path_type=Path))
@log_options
def serve_command(file: Path) -> int:
    """Serve streams of rows and their changes over gRPC.

    Ends with exit code 0 on SIGTERM and Ctrl-C: clients are told to go on elsewhere. Nothing is kept here, so any
    server of the same feeds takes them up.
    """
    log = current_log()
    log.keep("info")
    config = load_server(file)
    # Not above: what is wrong in the file is said without gRPC, too.
    from catchment.serve.server.feeds import feeds_of
    from catchment.serve.server.server import Server

    with stopped_by_signals(restore=_nothing) as stop:
        feeds = feeds_of(config)
        server = Server(config, feeds)
        try:
            click.echo(f"serving {', '.join(feeds.names)} on {_place(config)}")
            # A signal sets it, but does not always wake a thread that waits without end (seen: 1 of 20).
            while not stop.wait(_LOOK_SECONDS):
                pass
            log.say("stopping; clients go on with their last vgtids")
        finally:
            server.stop()
    return 0


def _place(config: ServeConfig) -> str:
    beside = f", as Arrow on port {config.flight.port}" if config.flight else ""
    return f"{config.address}:{config.port}{beside}{'' if config.tls else ', without TLS'}"


def _nothing() -> None:
    """There is nothing to restore."""
