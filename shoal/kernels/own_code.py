"""Compiled code whose functions are its own.

In numba, a kernel uses a function of another one that has the same name. But numba numbers its inner functions, such as
those of ``np.sort`` and ``np.argsort``, in each process. So code that different processes kept on disk may have one
name for different functions.
"""

from __future__ import annotations

from typing import Any

from llvmlite import binding
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler

SHARED = "5shoal7kernels"  # in the names of our functions, which mean the same in all kernels


def keep_own(module: Any, shared: str | None = None) -> None:
    """Hide the functions of a module of LLVM from other modules, except its entries and names with ``shared``."""
    for function in module.functions:
        entry = function.is_declaration or function.linkage == binding.Linkage.external
        if not entry and (shared is None or shared not in function.name):
            function.linkage = "internal"


class OwnCode(JITCodeLibrary):
    """Numba's code of a kernel, with the functions that are linked in as its own."""

    def _optimize_final_module(self) -> None:
        keep_own(self._final_module)
        super()._optimize_final_module()


class OwnCompiler(Compiler):
    """Numba's passes, with code of this kind."""

    def define_pipelines(self) -> list[Any]:
        self.state.library = OwnCode(self.state.targetctx.codegen(), self.state.func_id.func_qualname)
        self.state.library.enable_object_caching()
        return list(super().define_pipelines())
