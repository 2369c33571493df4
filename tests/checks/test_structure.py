"""The rules on how the code is cut. The layers themselves are checked by import-linter (`lint-imports`)."""

from __future__ import annotations

import ast

from tests.checks.source import PACKAGE, ROOT, Source, in_package, sources

MAX_MODULE_LINES = 400
MAX_FUNCTION_LINES = 80

PROJECT = sources(*(ROOT / name for name in ("sa_taskqueue", "tests", "benchmarks", "examples")))


def test_no_module_is_longer_than_400_lines() -> None:
    long = {source.name: lines for source in PROJECT if (lines := source.text.count("\n")) > MAX_MODULE_LINES}
    assert not long


def test_no_function_is_longer_than_80_lines() -> None:
    long = [
        f"{source.name}:{node.lineno} {node.name}"
        for source in PROJECT
        for node in source.nodes
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and (node.end_lineno or 0) - node.lineno + 1 > MAX_FUNCTION_LINES
    ]
    assert not long


def test_only_adapters_look_at_the_dialect() -> None:
    """What differs between databases is asked of the adapter, never decided by the dialect's name."""
    found = [
        f"{source.name}:{node.lineno}"
        for source in in_package()
        if not source.path.is_relative_to(PACKAGE / "adapters")
        for node in source.nodes
        if (isinstance(node, ast.Attribute) and _names_a_dialect(node)) or _compares_a_backend(node)
    ]
    assert not found


def test_the_database_side_and_the_registry_know_no_asyncio() -> None:
    found = [
        f"{source.name}:{line} {module}"
        for source in in_package("adapters", "models", "store", "queue", "codec")
        for module, line in source.imports()
        if module.partition(".")[0] == "asyncio" or module.startswith("sqlalchemy.ext.asyncio")
    ]
    assert not found


def test_only_the_store_executes_statements() -> None:
    """Others hand it a connection. Only setting up connections and transactions needs statements elsewhere."""
    set_up = ["runtime", "session/sqlite.py", "adapters/sqlite.py"]
    redis = "publishers/redis.py"  # whose pipelines have a method of that name
    allowed = [PACKAGE / name for name in ("store", "demo", "testing", redis, *set_up)]
    found = [
        f"{source.name}:{call.lineno}"
        for source in in_package()
        if not any(source.path.is_relative_to(path) for path in allowed)
        for call in source.calls("execute", "exec_driver_sql", "executemany", "scalars")
    ]
    assert not found


def test_asyncio_of_sqlalchemy_is_imported_where_it_is_used() -> None:
    """It needs greenlet, which SQLAlchemy 2.1 no longer installs by itself."""
    found = [
        f"{source.name}:{node.lineno}"
        for source in in_package()
        if source.path.name != "async_sessions.py"  # itself imported at the first use of AsyncTaskSession
        for node in _imported_at_once(source)
        if (getattr(node, "module", None) or node.names[0].name).startswith("sqlalchemy.ext.asyncio")
    ]
    assert not found


CLIENTS = {"aio_pika", "celery", "confluent_kafka", "dramatiq", "httpx", "kombu", "nats", "pika", "redis"}


def test_a_brokers_client_is_imported_in_its_own_file_alone() -> None:
    """In its publisher, or where ids are distributed: all else works without it."""
    found = [
        f"{source.name}:{line} {module}"
        for source in in_package()
        for module, line in source.imports()
        if module.partition(".")[0] in CLIENTS and not _belongs_to_a_broker(source)
    ]
    assert not found


def _belongs_to_a_broker(source: Source) -> bool:
    return source.path.parent.name in ("publishers", "distribution", "reservation") and not any(
        shared in source.path.name for shared in ("__init__", "base", "registry", "connected", "threaded", "envelope")
    )


def test_tests_wait_for_conditions_instead_of_sleeping() -> None:
    found = [
        f"{source.name}:{call.lineno}"
        for source in sources(ROOT / "tests")
        if source.name != "tests/support.py"
        for call in source.calls("sleep")
        if ast.unparse(call.args[0]) != "0"  # which lets other tasks run, and waits for nothing
    ]
    assert not found


def _names_a_dialect(node: ast.Attribute) -> bool:
    if node.attr == "is_mariadb":
        return True
    owner = node.value
    last = owner.attr if isinstance(owner, ast.Attribute) else owner.id if isinstance(owner, ast.Name) else ""
    return node.attr == "name" and last == "dialect"


def _compares_a_backend(node: ast.AST) -> bool:
    return isinstance(node, ast.Compare) and any(
        isinstance(inner, ast.Attribute) and inner.attr in {"get_backend_name", "drivername"}
        for inner in ast.walk(node)
    )


def _imported_at_once(source: Source) -> list[ast.Import | ast.ImportFrom]:
    """The imports that run with the module: at its top level, outside `if TYPE_CHECKING`."""
    tree = source.nodes[0]
    assert isinstance(tree, ast.Module)
    return [node for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)]


def test_nothing_waits_with_asyncio_wait_for() -> None:
    """Python 3.11's swallows a cancellation that comes together with the result; `asyncio.timeout` does not."""
    found = [
        f"{source.name}:{node.lineno}"
        for source in in_package()
        for node in source.nodes
        if isinstance(node, ast.Attribute)
        and node.attr == "wait_for"
        and isinstance(node.value, ast.Name)
        and node.value.id == "asyncio"
    ]
    assert not found
