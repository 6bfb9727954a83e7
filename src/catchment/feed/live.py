"""What the copy of a run goes by: the feed file, and what was set since. The loop's thread alone uses it.

What was set stays in force for later runs, until one begins with another value of that setting in its feed file.
"""

import logging
from collections.abc import Callable, Iterable

from catchment import world
from catchment.config import CopyConfig, Feed
from catchment.config.live import must_fit_sessions, setting_text, with_setting
from catchment.model.errors import ConfigError
from catchment.model.order import Answer, Order
from catchment.state.journal import Journal
from catchment.state.notes import Setting

_log = logging.getLogger(__name__)


class Live:
    """The settings in force; `use` is told of them at once, and when they change. Methods raise StateError and
    LeaseLost."""

    def __init__(self, feed: Feed, journal: Journal, use: Callable[[CopyConfig], None]) -> None:
        self._of_file = self._feed = feed
        self._journal = journal
        self._use = use
        kept = journal.settings()
        self._settings = tuple(self._still_in_force(kept))
        if self._settings != kept:
            journal.put_settings(self._settings)
        use(self._feed.copying)

    def obey(self, order: Order) -> Answer:
        """Change a setting. To obey again does no harm: it finds done what is asked."""
        name, now = order.setting, world.now_us()
        try:
            changed = with_setting(self._feed, name, order.value)
            must_fit_sessions(self._of_file, changed, name)
        except ConfigError as fault:
            return Answer(False, str(fault), now)
        value, of_file = setting_text(changed, name), setting_text(self._of_file, name)
        if value == setting_text(self._feed, name):
            return Answer(True, f"it is {value} already", now)
        others = tuple(one for one in self._settings if one.name != name)
        settings = others
        said = f"it is {value}, as in the feed file"
        if value != of_file:
            settings = (*others, Setting(name, value, of_file, order.user, now))
            said = f"it is {value}, until a run finds another value in the feed file than {of_file}"
        self._journal.put_settings(settings)
        self._settings, self._feed = settings, changed
        self._use(changed.copying)
        return Answer(True, said, now)

    def _still_in_force(self, kept: Iterable[Setting]) -> Iterable[Setting]:
        for one in kept:
            try:
                changed = with_setting(self._feed, one.name, one.value)
                must_fit_sessions(self._of_file, changed, one.name)
            except ConfigError as fault:  # another version of this program may know other settings
                _log.warning("%s=%s is not in force any more: %s", one.name, one.value, fault)
                continue
            now = setting_text(self._of_file, one.name)
            if now != one.file_value:
                _log.warning(
                    "%s=%s is not in force any more: the feed file says %s now, and said %s when that was set",
                    one.name,
                    one.value,
                    now,
                    one.file_value,
                )
                continue
            self._feed = changed
            yield one
