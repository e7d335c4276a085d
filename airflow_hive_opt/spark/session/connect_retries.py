"""How long a Spark Connect session waits for its server; imports gRPC."""

from __future__ import annotations

from pyspark.sql.connect.client.retries import DefaultPolicy, RetryPolicyState


class BoundedRetries(DefaultPolicy):
    """Spark's default retry policy, about ten minutes, but only once in a session's life.

    After a call has given up, later calls that restore settings or close the session do not wait.
    """

    def __init__(self, max_retries: int = 15) -> None:
        super().__init__(max_retries=max_retries)
        self.exhausted = False

    def can_retry(self, e: BaseException) -> bool:
        """See ``RetryPolicy``."""
        return not self.exhausted and super().can_retry(e)

    def to_state(self) -> RetryPolicyState:
        """See ``RetryPolicy``; the state belongs to one call."""
        return _State(self)


class _State(RetryPolicyState):
    def next_attempt(self, *exception: BaseException | None) -> int | None:
        wait = super().next_attempt(*exception)  # before PySpark 4.1 it takes none
        if wait is None and isinstance(self.policy, BoundedRetries):
            self.policy.exhausted = True
        return wait
