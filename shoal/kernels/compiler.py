"""A compiler for kernels: numba's own, with less work for the same machine code.

- Numba optimizes each function, makes machine code of it, then links it into its caller and does both again. A function
  four calls deep is compiled five times, and only the last time counts. Here, kernels that only kernels call are
  optimized and translated only as part of their callers (``AsPart``).
- Numba writes many instructions that LLVM then removes: counts of references, copies of arrays' descriptions, and
  tuples that are packed and unpacked. Kernels take tuples of a dozen arrays, so this is three quarters of the text that
  LLVM reads. ``LentLower`` doesn't write them.
- Numba finds the type of each call many times. ``KnownTypes`` keeps it.
- Numba finds anew after most passes where each variable is used last, and describes each pass for whoever listens.
  ``Passes`` and the passes here do so only where it is needed.
"""

from __future__ import annotations

import operator
from collections import Counter
from dis import get_instructions
from itertools import pairwise
from types import CodeType
from typing import Any

from llvmlite import binding
from llvmlite.ir import IRBuilder
from llvmlite.ir.instructions import CastInstr, ExtractValue, GEPInstr, InsertValue, LoadInstr, PhiInstr
from numba.core import cgutils, ir, typed_passes, types, untyped_passes
from numba.core.analysis import compute_use_defs, must_use_alloca
from numba.core.compiler import Compiler, Flags
from numba.core.compiler_machinery import PassManager, register_pass
from numba.core.dispatcher import _FunctionCompiler
from numba.core.errors import new_error_context
from numba.core.interpreter import Interpreter, peep_hole_delete_with_exit, peep_hole_fuse_dict_add_updates
from numba.core.ir_utils import build_definitions
from numba.core.lowering import Lower
from numba.core.rewrites import rewrite_registry
from numba.core.ssa import reconstruct_ssa
from numba.core.targetconfig import TargetConfig
from numba.core.transforms import canonicalize_cfg
from numba.np.arrayobj import fix_integer_index, load_item, store_item

from shoal.kernels.own_code import SHARED, OwnCode, keep_own

ENVIRONMENT = "_ZN08NumbaEnv"
CLOSURES = (untyped_passes.WithLifting, untyped_passes.InlineClosureLikes, untyped_passes.MakeFunctionToJitFunction)
OPERATORS = {
    *(operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv, operator.mod),
    *(operator.iadd, operator.isub, operator.imul, operator.lt, operator.le, operator.gt, operator.ge),
    *(operator.eq, operator.ne),
}
PURE = (CastInstr, ExtractValue, GEPInstr, InsertValue, LoadInstr)
ENTRY_FLAGS = ("no_cpython_wrapper", "no_cfunc_wrapper", "release_gil")


class QuickCode(OwnCode):
    """Numba's code. Before other code is linked in, functions are only simplified; after that, all is optimized."""

    def _optimize_functions(self, module: Any) -> None:
        module.data_layout = self._codegen._data_layout
        for function in module.functions:
            if not function.is_declaration:
                options = {"opt": 1, "loop_vectorize": False, "slp_vectorize": False}
                passes, builder = self._codegen._function_pass_manager(**options)
                passes.run(function, builder)


class LinkedCode(QuickCode):
    """Code that is linked into callers; its own module for the machine has only its (empty) environment."""

    def _optimize_final_module(self) -> None:
        """Remove unused code: numba takes addresses that it never uses, and its cache rejects code with one.

        Only the functions of shoal keep their names for callers.
        """
        keep_own(self._final_module, SHARED)
        passes, builder = binding.create_new_module_pass_manager(), self._codegen._pass_builder(opt=0)
        passes.add_sroa_pass()
        passes.add_aggressive_dce_pass()
        passes.add_global_dead_code_eliminate_pass()
        passes.run(self._final_module, builder)

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        code = self._final_module
        for function in code.functions:
            if not function.is_declaration and function.linkage == binding.Linkage.external:
                function.linkage = "linkonce_odr"
        self._shared_module = code
        names = [v.name for v in code.global_variables if v.name.startswith(ENVIRONMENT)]
        self._final_module = binding.parse_assembly("\n".join(f'@"{name}" = common global ptr null' for name in names))
        self._final_module.name = code.name
        super()._finalize_final_module()


class FoldingBuilder(IRBuilder):  # type: ignore[misc]
    """Numba's builder of instructions, which gives the part of a packed tuple without an instruction."""

    def extract_value(self, agg: Any, idx: Any, name: str = "") -> Any:
        """The part ``idx`` of a tuple or array of LLVM."""
        at = tuple(idx) if isinstance(idx, (tuple, list)) else (idx,)
        while isinstance(agg, InsertValue):
            put = tuple(agg.indices)
            shared = min(len(put), len(at))
            if put[:shared] != at[:shared]:
                agg = agg.aggregate
            elif len(put) > len(at):
                break
            else:
                agg, at = agg.value, at[len(put) :]
                if not at:
                    return agg
        return super().extract_value(agg, at, name)


def drop_unused(function: Any) -> None:
    """Remove the instructions of a function that pack, unpack, or load a value that nothing uses."""
    uses: Counter[int] = Counter()
    steps = [step for block in function.blocks for step in block.instructions]
    for step in steps:
        uses.update(map(id, _operands(step)))
    todo = [step for step in steps if isinstance(step, PURE) and not uses[id(step)]]
    unused = set()
    while todo:
        step = todo.pop()
        unused.add(id(step))
        for used in _operands(step):
            uses[id(used)] -= 1
            if isinstance(used, PURE) and not uses[id(used)]:
                todo.append(used)
    for block in function.blocks:
        block.instructions = [step for step in block.instructions if id(step) not in unused]


def _operands(step: Any) -> list[Any]:
    return [value for value, _ in step.incomings] if isinstance(step, PhiInstr) else list(step.operands)


def _from_arguments(lenders: dict[str, list[Any]]) -> set[str]:
    """The variables that get arguments, fields of arguments, and values of each other alone."""
    found = {name for name, given in lenders.items() if given}
    size = -1
    while len(found) != size:
        size = len(found)
        found = {name for name in found if all(of is True or of in found for of in lenders[name])}
    return found


class LentLower(Lower):  # type: ignore[misc]
    """Numba's translation to LLVM's language, in fewer instructions.

    - Numba counts a reference whenever a variable gets an array, and ends the count where the variable ends. The caller
      keeps the arguments alive, so no counts are needed for a variable that only gets arguments and fields of them. It
      is called lent here.
    - Numba clears each variable where it ends. Only variables that count references need this.
    - A variable that gets an argument or a field of one, and nothing else, is a value, not a place in memory.
    - Numba copies the description of an array to memory for each access to an element. Here its parts are values. An
      access has the same meaning: a negative index counts from the end, and another index is not checked.
    """

    def init(self) -> None:
        super().init()
        names = {name for name in self.fndesc.typemap if not name.startswith("arg.")}
        kinds = self.context.data_model_manager
        holds = {name for name in names if self.context.enable_nrt and kinds[self.typeof(name)].contains_nrt_meminfo()}
        lenders: dict[str, list[Any]] = {name: [] for name in names}
        given: dict[str, Any] = {}
        for block in self.blocks.values():
            for step in block.find_insts(ir.Assign):
                lenders[step.target.name].append(self._lender(step))
                given[step.target.name] = step.value
        lent = _from_arguments(lenders)
        self._lent, self._counted = holds & lent, holds - lent
        once = _from_arguments({name: of for name, of in lenders.items() if len(of) == 1})
        self._once = {name: given[name] for name in once}
        self._values: dict[Any, Any] = {}

    def _find_singly_assigned_variable(self) -> None:
        """The variables that are assigned once and used in the same block alone: numba keeps them as values."""
        legal = (
            self.context.enable_nrt
        )  # else no pass has found the lifetimes since variables became single assignments
        uses = self.func_ir.variable_lifetime.usedefs if legal else compute_use_defs(self.blocks)
        elsewhere = must_use_alloca(self.blocks).union(*uses.usemap.values())
        given = Counter(step.target.name for block in self.blocks.values() for step in block.find_insts(ir.Assign))
        self._singly_assigned_vars = {name for name, n in given.items() if n == 1 and name not in elsewhere}
        self._blk_local_varmap: dict[str, Any] = {}

    def _lender(self, step: Any) -> Any:
        """True if the variable gets an argument; the variable whose value or field it gets; None for anything else."""
        value, kind = step.value, self.typeof(step.target.name)
        if isinstance(value, ir.Arg):
            return self.typeof(f"arg.{value.name}") == kind or None
        if isinstance(value, ir.Var):
            return value.name if self.typeof(value.name) == kind else None
        if isinstance(value, ir.Expr) and value.op in ("getattr", "static_getitem"):
            at = self._field(value)
            return value.value.name if at is not None and self.typeof(value.value.name)[at] == kind else None
        return None

    def _field(self, value: Any) -> int | None:
        """The number of the field of a tuple that an expression asks for."""
        kind = self.typeof(value.value.name)
        if value.op == "getattr":
            named = isinstance(kind, types.BaseNamedTuple) and value.attr in kind.fields
            return kind.fields.index(value.attr) if named else None
        here = isinstance(kind, types.BaseTuple) and isinstance(value.index, int)
        return value.index % len(kind) if here else None

    def _lent_value(self, value: Any) -> Any:
        """The value of an expression that is an argument, a variable, or a field of one."""
        if isinstance(value, ir.Arg):
            return self.fnargs[value.index]
        if isinstance(value, ir.Var):
            return self.loadvar(value.name)
        return self._part(value.value.name, self._field(value))

    def _part(self, name: str, at: Any) -> Any:
        """Part ``at`` of the value of a variable; if the variable gets one value, the part is found at the start."""
        if name not in self._once:
            return self.builder.extract_value(self.loadvar(name), at)
        if (name, at) not in self._values:
            whole = self.loadvar(name)
            with self.builder.goto_block(self._after_arguments):
                self._values[name, at] = self.builder.extract_value(whole, at)
        return self._values[name, at]

    def setup_function(self, fndesc: Any) -> None:
        super().setup_function(fndesc)
        self.builder = FoldingBuilder(self.entry_block)
        self.call_helper = self.call_conv.init_call_helper(self.builder)

    def lower_normal_function(self, fndesc: Any) -> None:
        super().lower_normal_function(fndesc)
        drop_unused(self.function)

    def extract_function_arguments(self) -> Any:
        arguments = super().extract_function_arguments()
        self._after_arguments = self.builder.basic_block
        return arguments

    def lower_assign(self, ty: Any, inst: Any) -> Any:
        name = inst.target.name
        if name in self._once:
            return self.loadvar(name)
        return self._lent_value(inst.value) if name in self._lent else super().lower_assign(ty, inst)

    def loadvar(self, name: str) -> Any:
        if name not in self._once:
            return super().loadvar(name)
        if name not in self._values:
            self._values[name] = self._lent_value(self._once[name])
        return self._values[name]

    def storevar(self, value: Any, name: str, argidx: int | None = None) -> None:
        if name in self._once:
            return
        if name in self._counted:
            super().storevar(value, name, argidx)
        elif name in self._singly_assigned_vars:
            self._blk_local_varmap[name] = value
        else:
            self.builder.store(value, self.getvar(name))

    def delvar(self, name: str) -> None:
        if name in self._counted:
            super().delvar(name)

    def _alloca_var(self, name: str, fetype: Any) -> None:
        if name not in self._once:
            super()._alloca_var(name, fetype)

    def alloca_lltype(self, name: str, lltype: Any, datamodel: Any = None) -> Any:
        return cgutils.alloca_once(self.builder, lltype, name=name)

    def lower_expr(self, resty: Any, expr: Any) -> Any:
        if expr.op == "getattr" and expr.attr in ("shape", "size"):
            kind = self.typeof(expr.value.name)
            if isinstance(kind, types.Array):
                return self._array_part(expr.value.name, "shape" if expr.attr == "shape" else "nitems")
        if expr.op == "static_getitem" and expr.index_var is not None:
            place = self._place(expr.value.name, expr.index_var.name)
            if place is not None:
                return self._element(expr.value.name, place, resty)
        return super().lower_expr(resty, expr)

    def lower_getitem(self, resty: Any, expr: Any, value: Any, index: Any, signature: Any) -> Any:
        place = self._place(value.name, index.name)
        if place is None:
            return super().lower_getitem(resty, expr, value, index, signature)
        return self._element(value.name, place, resty)

    def _element(self, name: str, place: Any, kind: Any) -> Any:
        """The element at a place of an array, as a value of a type."""
        array = self.typeof(name)
        return self.context.cast(self.builder, load_item(self.context, self.builder, array, place), array.dtype, kind)

    def lower_setitem(self, target_var: Any, index_var: Any, value_var: Any, signature: Any) -> Any:
        place = self._place(target_var.name, index_var.name)
        kinds, array = (self.typeof(value_var.name), signature.args[2]), self.typeof(target_var.name)
        if place is None or not all(isinstance(kind, (types.Number, types.Boolean)) for kind in kinds):
            return super().lower_setitem(target_var, index_var, value_var, signature)
        value = self.loadvar(value_var.name)
        for before, after in pairwise((*kinds, array.dtype)):
            value = self.context.cast(self.builder, value, before, after)
        return store_item(self.context, self.builder, array, value, place)

    def _place(self, name: str, at: str) -> Any:
        """The address of an element of an array, if it holds numbers and integers say where; else None."""
        array, kind = self.typeof(name), self.typeof(at)
        several = isinstance(kind, types.BaseTuple)
        kinds = tuple(kind) if several else (kind,)
        if (
            self.context.enable_boundscheck
            or not isinstance(array, types.Array)
            or not isinstance(array.dtype, (types.Number, types.Boolean))
            or len(kinds) != array.ndim
            or not all(isinstance(each, types.Integer) for each in kinds)
        ):
            return None
        index = self.loadvar(at)
        indices = [self.builder.extract_value(index, i) for i in range(len(kinds))] if several else [index]
        shape = [self._array_part(name, "shape", axis) for axis in range(array.ndim)]
        strides = [self._array_part(name, "strides", axis) for axis in range(array.ndim)] if array.layout == "A" else []
        fixed = [
            fix_integer_index(self.context, self.builder, each, where, size)
            for each, where, size in zip(kinds, indices, shape, strict=True)
        ]
        data = self._array_part(name, "data")
        return cgutils.get_item_pointer2(self.context, self.builder, data, shape, strides, array.layout, fixed)

    def _array_part(self, name: str, field: str, axis: int | None = None) -> Any:
        at = self.context.data_model_manager[self.typeof(name)].get_field_position(field)
        return self._part(name, at if axis is None else (at, axis))


@register_pass(mutates_CFG=True, analysis_only=False)
class LentLowering(typed_passes.BaseNativeLowering):  # type: ignore[misc]
    """Numba's last pass, with this translation."""

    _name = "shoal_native_lowering"

    @property
    def lowering_class(self) -> type:
        return LentLower


class PlainInterpreter(Interpreter):  # type: ignore[misc]
    """Numba's translation of a function without ``with`` and dictionaries, which looks for neither at the end."""

    def post_process(self, peepholes: Any, func_ir: Any) -> Any:
        others = (peep_hole_delete_with_exit, peep_hole_fuse_dict_add_updates)
        return super().post_process([each for each in peepholes if each not in others], func_ir)


@register_pass(mutates_CFG=True, analysis_only=False)
class PlainTranslation(untyped_passes.TranslateByteCode):  # type: ignore[misc]
    """Numba's translation to its own language, by the interpreter above where it is enough."""

    _name = "shoal_translate_bytecode"

    def run_pass(self, state: Any) -> bool:
        if any("WITH" in step.opname or "MAP" in step.opname for step in get_instructions(state.func_id.code)):
            return bool(super().run_pass(state))
        state.func_ir = PlainInterpreter(state.func_id).interpret(state.bc)
        return True


@register_pass(mutates_CFG=True, analysis_only=False)
class Canonical(untyped_passes.IRProcessing):  # type: ignore[misc]
    """Numba's canonical order of blocks, without the lifetimes of variables."""

    _name = "shoal_ir_processing"

    def run_pass(self, state: Any) -> bool:
        state.func_ir.blocks = canonicalize_cfg(state.func_ir.blocks)
        return True


@register_pass(mutates_CFG=True, analysis_only=False)
class UntypedRewrites(untyped_passes.GenericRewrites):  # type: ignore[misc]
    """Numba's changes of statements before types are known, without the lifetimes of variables."""

    _name = "shoal_generic_rewrites"

    def run_pass(self, state: Any) -> bool:
        blocks = state.func_ir.blocks
        for rewrite in (each(state) for each in rewrite_registry.rewrites["before-inference"]):
            for at in blocks:
                while rewrite.match(state.func_ir, blocks[at], state.typemap, state.calltypes):
                    blocks[at] = rewrite.apply()
        return True


@register_pass(mutates_CFG=True, analysis_only=False)
class SingleAssignments(untyped_passes.ReconstructSSA):  # type: ignore[misc]
    """Numba's static single assignments, without the lifetimes of variables."""

    _name = "shoal_ssa"

    def run_pass(self, state: Any) -> bool:
        state.func_ir = reconstruct_ssa(state.func_ir)
        self._patch_locals(state)
        state.func_ir._definitions = build_definitions(state.func_ir.blocks)
        return True


@register_pass(mutates_CFG=True, analysis_only=False)
class TypedRewrites(typed_passes.NopythonRewrites):  # type: ignore[misc]
    """Numba's changes of statements once types are known: they concern calculations with whole arrays alone."""

    _name = "shoal_nopython_rewrites"

    def run_pass(self, state: Any) -> bool:
        whole = any(
            isinstance(step.value, ir.Expr)
            and step.value.op in ("unary", "binop", "inplace_binop", "call")
            and isinstance(state.typemap[step.target.name], types.Array)
            for block in state.func_ir.blocks.values()
            for step in block.find_insts(ir.Assign)
        )
        return whole and bool(super().run_pass(state))


@register_pass(mutates_CFG=True, analysis_only=False)
class PhisAsAssignments(typed_passes.PreLowerStripPhis):  # type: ignore[misc]
    """Numba's return from single assignments to variables, without their lifetimes."""

    _name = "shoal_strip_phis"

    def run_pass(self, state: Any) -> bool:
        state.func_ir = self._strip_phi_nodes(state.func_ir)
        state.func_ir._definitions = build_definitions(state.func_ir.blocks)
        return True


@register_pass(mutates_CFG=False, analysis_only=False)
class CountedLifetimes(typed_passes.IRLegalization):  # type: ignore[misc]
    """Numba's ends of variables, where references are counted."""

    _name = "shoal_ir_legalization"

    def run_pass(self, state: Any) -> bool:
        return bool(state.flags.nrt) and bool(super().run_pass(state))


QUICKER = {
    untyped_passes.TranslateByteCode: PlainTranslation, untyped_passes.IRProcessing: Canonical,
    untyped_passes.GenericRewrites: UntypedRewrites, untyped_passes.ReconstructSSA: SingleAssignments,
    typed_passes.NopythonRewrites: TypedRewrites, typed_passes.PreLowerStripPhis: PhisAsAssignments,
    typed_passes.IRLegalization: CountedLifetimes, typed_passes.NativeLowering: LentLowering,
}  # fmt: skip


class Passes(PassManager):  # type: ignore[misc]
    """Numba's sequence of passes, without the events and times of each."""

    def _runPass(self, index: int, pss: Any, internal_state: Any) -> None:
        pss.analysis = self._analysis
        with new_error_context("Pass {name}", name=pss.name()):
            for run in (pss.run_initialization, pss.run_pass, pss.run_finalizer):
                run(internal_state)


class KnownTypes:
    """Numba's typing, which keeps the types that it finds for numba's own functions, operators, and attributes.

    Numba types each call again until the types of all variables are known, and tries about ten templates each time.
    What it finds depends on the types of the arguments and the options of the compiler alone.

    known  what was found with these options, also for other kernels
    """

    def __init__(self, context: Any, known: dict[Any, Any]) -> None:
        self._context, self._known = context, known

    def __getattr__(self, name: str) -> Any:
        return getattr(self._context, name)

    def resolve_function_type(self, func: Any, args: Any, kws: Any) -> Any:
        if not isinstance(func, types.Function):
            return self._context.resolve_function_type(func, args, kws)
        if func.typing_key in OPERATORS and all(isinstance(kind, (types.Number, types.Boolean)) for kind in args):
            args = tuple(map(types.unliteral, args))
        return self._find("resolve_function_type", (func, tuple(args), tuple(dict(kws).items())), (func, args, kws))

    def resolve_getattr(self, typ: Any, attr: str) -> Any:
        return self._find("resolve_getattr", (typ, attr), (typ, attr))

    def resolve_getitem(self, target: Any, index: Any) -> Any:
        return self._find("resolve_getitem", (target, index), (target, index))

    def resolve_setitem(self, target: Any, index: Any, value: Any) -> Any:
        return self._find("resolve_setitem", (target, index, value), (target, index, value))

    def _find(self, method: str, given: tuple[Any, ...], arguments: tuple[Any, ...]) -> Any:
        if (method, given) in self._known:
            return self._known[method, given]
        found = getattr(self._context, method)(*arguments)
        if found is not None:
            self._known[method, given] = found
        return found


_KNOWN: dict[str, dict[Any, Any]] = {}


class Whole(Compiler):
    """Numba's own passes, with another last one, and without those for functions in functions if there are none."""

    library: type = QuickCode

    def define_pipelines(self) -> list[Any]:
        state = self.state
        state.library = self.library(state.targetctx.codegen(), state.func_id.func_qualname)
        state.library.enable_object_caching()
        options = str(sorted((name, str(value)) for name, value in state.flags._within().items()))
        state.typingctx = KnownTypes(state.typingctx, _KNOWN.setdefault(options, {}))
        function, pipelines = state.func_id, []
        closures = any(isinstance(value, CodeType) for value in function.code.co_consts)
        quicker = {typed_passes.NativeLowering: LentLowering} if closures else QUICKER
        if function.is_generator or state.flags.debuginfo:  # both need every variable in memory
            quicker = {}
        for given in super().define_pipelines():
            pipeline = Passes(given.pipeline_name)
            for each, text in given.passes:
                if closures or each not in CLOSURES:
                    pipeline.add_pass(quicker.get(each, each), text)
            pipeline.finalize()
            pipelines.append(pipeline)
        return pipelines


class AsPart(Whole):
    """The same, with a result that is linked into callers."""

    library = LinkedCode


class QuickFlags(Flags):  # type: ignore[misc]
    """Numba's flags with a fast comparison: for a large kernel, numba compares them a hundred thousand times.

    Numba compiles its own functions, such as ``np.empty``, again for kernels with other flags. They don't depend on
    whether Python can call the kernel, so kernels of both kinds share them here.
    """

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, TargetConfig):
            return NotImplemented
        return bool(self._values == other._values or self._within() == self.__class__._within(other))

    def _within(self) -> dict[str, Any]:
        """The options that differ from the default, except those for calls from outside."""
        options = self.options
        return {n: v for n, v in self._values.items() if n not in ENTRY_FLAGS and v != options[n].default}

    def __hash__(self) -> int:
        return len(self.options)  # the same for all, as in numba, whose hash uses the options' names


class PartCompiler(_FunctionCompiler):  # type: ignore[misc]
    """Numba's compiler of a function, with the flags above."""

    def _customize_flags(self, flags: Flags) -> Flags:
        return QuickFlags(flags)
