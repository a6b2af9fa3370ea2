"""Finds the possible mutations of a function and applies one to a file's text."""

import ast
import copy
import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain

Function = ast.FunctionDef | ast.AsyncFunctionDef

COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
ARITHMETIC: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult,
    ast.Pow: ast.Mult,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
}
KINDS = (*("comparison", "boolean", "arithmetic", "constant", "removal") * 3, "swap")
"""The order in which kinds are drawn: most swapped arguments fail everywhere at once."""
SKIPPED = {"annotation", "returns", "type_params", "decorator_list"}
LOGGERS = {"log", "_log", "logger"}


@dataclass(frozen=True)
class Mutation:
    """A replacement of one node's text."""

    kind: str
    node: ast.expr | ast.stmt
    after: str

    @property
    def before(self) -> str:
        """The node's code in `ast.unparse`'s layout."""
        return ast.unparse(self.node)

    def apply(self, text: str) -> str:
        """Return a file's text with the node replaced."""
        lines = text.encode().splitlines(keepends=True)
        starts = [0]
        for line in lines:
            starts.append(starts[-1] + len(line))
        node = self.node
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        first = starts[node.lineno - 1] + node.col_offset
        last = starts[node.end_lineno - 1] + node.end_col_offset
        source = text.encode()
        return (source[:first] + self.after.encode() + source[last:]).decode()


def functions(tree: ast.AST, prefix: str = "") -> Iterator[tuple[str, Function]]:
    """Yield each function and method with its qualified name; nested functions belong to the outer one."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, Function):
            yield prefix + node.name, node
        elif isinstance(node, ast.ClassDef):
            yield from functions(node, f"{prefix}{node.name}.")


def code_hash(function: Function) -> str:
    """Hash a function's code without layout, comments and docstrings."""
    bare = copy.deepcopy(function)
    for node in ast.walk(bare):
        if isinstance(node, Function | ast.ClassDef) and ast.get_docstring(node, clean=False) is not None:
            node.body = node.body[1:] or [ast.Pass()]
    return hashlib.sha256(ast.unparse(bare).encode()).hexdigest()[:16]


def mutations(function: Function) -> list[Mutation]:
    """List a function's mutations in a fixed order; messages, logging and annotations have none."""
    arguments = function.args
    defaults = [default for default in (*arguments.defaults, *arguments.kw_defaults) if default is not None]
    return [found for node in (*defaults, *function.body) for found in _mutations_in(node, nested=False)]


def _mutations_in(node: ast.AST, *, nested: bool) -> Iterator[Mutation]:
    """Yield the mutations of a node and of all nodes below it; `nested`: inside an `if` or a loop."""
    if isinstance(node, ast.stmt) and (_is_docstring(node) or _logs(node)):
        return
    if isinstance(node, ast.stmt) and _is_removable(node, nested=nested):
        yield Mutation("removal", node, "pass")
    if isinstance(node, ast.Raise | ast.Assert | ast.JoinedStr):
        return
    if isinstance(node, ast.expr):
        yield from (Mutation(kind, node, _code(changed)) for kind, changed in _changed(node))
    for test in (getattr(node, "test", None), *getattr(node, "ifs", [])):
        if test is not None and not isinstance(test, ast.Compare | ast.BoolOp | ast.UnaryOp):
            yield Mutation("boolean", test, _code(ast.UnaryOp(ast.Not(), test)))
    inside = nested or isinstance(node, ast.If | ast.For | ast.AsyncFor | ast.While | ast.match_case)
    fields = ast.iter_fields(node)
    values = [value if isinstance(value, list) else [value] for name, value in fields if name not in SKIPPED]
    for child in chain.from_iterable(values):
        if isinstance(child, ast.AST):
            yield from _mutations_in(child, nested=inside)


def _is_docstring(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _logs(node: ast.stmt) -> bool:
    if not isinstance(node, ast.Expr):
        return False
    call = node.value.value if isinstance(node.value, ast.Await) else node.value
    return isinstance(call, ast.Call) and ast.unparse(call.func).split(".")[0] in LOGGERS


def _is_removable(node: ast.stmt, *, nested: bool) -> bool:
    """Whether the code still runs without a statement: no name that later code needs goes with it."""
    if isinstance(node, ast.Assign):
        return all(isinstance(target, ast.Attribute | ast.Subscript) for target in node.targets)
    if isinstance(node, ast.Return | ast.Continue | ast.Break):
        return nested
    return isinstance(node, ast.Expr | ast.AugAssign | ast.Raise | ast.Delete) and not (
        isinstance(node, ast.Expr) and isinstance(node.value, ast.Yield | ast.YieldFrom)
    )


def _changed(node: ast.expr) -> Iterator[tuple[str, ast.expr]]:
    match node:
        case ast.Compare():
            for index, operator in enumerate(node.ops):
                operators = [*node.ops]
                operators[index] = COMPARISONS[type(operator)]()
                yield "comparison", ast.Compare(node.left, operators, node.comparators)
        case ast.BoolOp():
            yield "boolean", ast.BoolOp(ast.Or() if isinstance(node.op, ast.And) else ast.And(), node.values)
        case ast.UnaryOp(op=ast.Not()):
            yield "boolean", node.operand
        case ast.BinOp() if type(node.op) in ARITHMETIC and not (_is_text(node.left) or _is_text(node.right)):
            yield "arithmetic", ast.BinOp(node.left, ARITHMETIC[type(node.op)](), node.right)
        case ast.Constant(value=bool() as value):
            yield "constant", ast.Constant(not value)
        case ast.Constant(value=int() | float() as value):
            yield "constant", ast.Constant(value + 1)
        case ast.Call(
            args=[ast.Name() | ast.Attribute() as first, ast.Name() | ast.Attribute() as second, *rest]
        ):
            yield "swap", ast.Call(node.func, [second, first, *rest], node.keywords)


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.JoinedStr) or (
        isinstance(node, ast.Constant) and isinstance(node.value, str | bytes)
    )


def _code(node: ast.expr) -> str:
    code = ast.unparse(ast.fix_missing_locations(node))
    return code if isinstance(node, ast.Constant) else f"({code})"
