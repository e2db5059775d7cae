"""The root of all errors of this package; each stands beside what raises it.

An error is also the builtin that it would be without us, mostly `ValueError` or `TypeError`, so that either
can be caught. What a person wrote is wrong in one of these ways:

    InvalidElementError        an element breaks a rule of validity
      BrokenPropertyError      or what its input was said to be
    PlanError                  a plan cannot mean anything, or cannot be run as it is
    ExpressionError            a column is computed of what is not there, or of types that do not go together
    UnsoundLifetimeError       nothing could be promised of lifetimes that are altered like this
    AnswerError                a function that is applied gives no answer to its rows
    ClosedError                a job that is closed is pushed to
    FailedJobError             or one in which a pass was broken off by an error
    SchemaError                data has not the columns or types that it should have
    UnsupportedTypeError       a type whose values cannot be told apart
    NotationError, DialectError, MalformedError, UnwritableError, UnreadableError, UnknownFormatError
    CheckpointError, StateFormatError, QueryError        a query cannot go on
    TopicError, BrokerError, TableError                  an end of it is not what it was
"""


class AnabranchError(Exception):
    """An error of ours, whatever else it is."""
