"""A compiler for kernels that only kernels call: they are optimized and translated only as part of their callers.

Numba optimizes each function, makes machine code of it, then links it into its caller and does both again. A function
four calls deep is compiled five times, and only the last time counts.
"""

from __future__ import annotations

from typing import Any

from llvmlite import binding
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler, Flags
from numba.core.dispatcher import _FunctionCompiler
from numba.core.targetconfig import TargetConfig

ENVIRONMENT = "_ZN08NumbaEnv"
ENTRY_FLAGS = ("no_cpython_wrapper", "no_cfunc_wrapper", "release_gil")


class LinkedCode(JITCodeLibrary):
    """Code that is linked into callers; its own module for the machine has only its (empty) environment."""

    def _optimize_final_module(self) -> None:
        """Remove unused code: numba takes addresses that it never uses, and its cache rejects code with one."""
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


class AsPart(Compiler):
    """Numba's own passes, with a result that is linked into callers."""

    def define_pipelines(self) -> list[Any]:
        self.state.library = LinkedCode(self.state.targetctx.codegen(), self.state.func_id.func_qualname)
        self.state.library.enable_object_caching()
        return super().define_pipelines()


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
