"""``@task.map_join_prune``: a function that returns the statement."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from airflow_hive_opt.operators.map_join_prune import MapJoinPruneOperator
from airflow_hive_opt.provider.airflow_compat import (
    SET_DURING_EXECUTION,
    AirflowFailException,
    DecoratedOperator,
    TaskDecorator,
    determine_kwargs,
    task_decorator_factory,
)

if TYPE_CHECKING:
    from airflow_hive_opt.provider.airflow_compat import Context


class _MapJoinPruneDecoratedOperator(DecoratedOperator, MapJoinPruneOperator):
    """:class:`MapJoinPruneOperator` with a function that returns the statement, then rendered."""

    template_fields: Sequence[str] = (
        *DecoratedOperator.template_fields,
        *MapJoinPruneOperator.template_fields,
    )
    template_fields_renderers: ClassVar[dict[str, str]] = {
        **DecoratedOperator.template_fields_renderers,
        **MapJoinPruneOperator.template_fields_renderers,
    }
    custom_operator_name = "@task.map_join_prune"
    xcom_push = None  # Airflow 3.0 requires the attribute but does not use it

    def __init__(
        self,
        *,
        python_callable: Callable[..., str],
        op_args: Collection[Any] | None = None,
        op_kwargs: Mapping[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(
            python_callable=python_callable,
            op_args=op_args,
            op_kwargs=op_kwargs,
            sql=SET_DURING_EXECUTION,
            **kwargs,
        )

    def execute(self, context: Context) -> Any:
        """Calls the function and runs the statement that it returns."""
        known = {**context, **self.op_kwargs}
        arguments = determine_kwargs(self.python_callable, self.op_args, known)
        sql = self.python_callable(*self.op_args, **arguments)
        if not isinstance(sql, str) or not sql.strip():
            raise AirflowFailException(
                f"{self.python_callable.__name__} must return the statement as text, not {sql!r}"
            )
        self.sql = sql
        self.render_template_fields(context)
        return super().execute(context)


def map_join_prune_task(
    python_callable: Callable[..., str] | None = None, **kwargs: Any
) -> TaskDecorator:
    """Turns a function that returns a statement into a task; takes the operator's arguments."""
    return task_decorator_factory(
        python_callable=python_callable,
        decorated_operator_class=_MapJoinPruneDecoratedOperator,
        **kwargs,
    )
