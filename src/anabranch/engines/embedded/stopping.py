"""A run that is asked to stop, by any thread or by the handler of a signal."""

import threading


class Stop:
    """State: whether it was asked for. Whatever waits meanwhile is woken."""

    def __init__(self) -> None:
        self.changed = threading.Condition()
        self._asked = threading.Event()

    def ask(self) -> None:
        """Stop; a second time changes nothing."""
        if self._asked.is_set():
            return
        self._asked.set()
        with self.changed:
            self.changed.notify_all()

    def asked(self) -> bool:
        """Whether it has been asked for."""
        return self._asked.is_set()

    def wait(self, seconds: float) -> bool:
        """Whether it is asked for within so many seconds."""
        return self._asked.wait(seconds)
