"""State stores in memory, one for each URL. They outlive the simulated processes that open them."""

from typing import Any

from sqlalchemy import Engine, StaticPool, create_engine, event

from catchment.state import database


class Stores:
    """Stands in the place of `catchment.state.database._engine`."""

    def __init__(self) -> None:
        self._engines: dict[str, Engine] = {}

    def engine(self, url: object) -> Engine:
        """The store of a URL, which is empty at first."""
        name = str(url)
        if name not in self._engines:
            engine = create_engine(
                "sqlite://", poolclass=StaticPool, connect_args={"check_same_thread": False}
            )
            engine.dispose = lambda close=True: None  # type: ignore[method-assign]
            event.listen(engine, "connect", _begins_nothing)
            event.listen(engine, "begin", lambda connection: connection.exec_driver_sql("BEGIN"))
            self._engines[name] = engine
        return self._engines[name]

    def lose(self, file: str) -> None:
        """Remove what the store of a file holds."""
        (engine,) = [one for url, one in self._engines.items() if url.endswith(f"/{file}")]
        with engine.begin() as connection:
            for table in database.metadata.tables:
                connection.exec_driver_sql(f"DROP TABLE IF EXISTS {table}")

    def close(self) -> None:
        """Give all connections back."""
        for engine in self._engines.values():
            engine.pool.dispose()


def _begins_nothing(connection: Any, record: Any) -> None:
    """The driver would leave SELECTs outside of transactions."""
    connection.isolation_level = None
