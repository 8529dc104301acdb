"""Inner functions: lowered once, and made machine code only as a part of whoever Python calls.

Numba optimises every function, and makes machine code of it, on its own, with all it calls copied in; a
function ten calls deep is then optimised ten times over. Only entry points are ever called from Python. So
an inner function stops at the code of LLVM, simplified by itself, and is linked into its callers as it is:
the optimiser sees it once for each entry point, where it is compiled into it or kept as a call as before.
"""

from __future__ import annotations

from typing import Any

from numba import _dynfunc
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompilerBase, DefaultPassBuilder
from numba.core.compiler_machinery import register_pass
from numba.core.typed_passes import NativeLowering


class InnerLibrary(JITCodeLibrary):  # type: ignore[misc]
    """The code of an inner function and of all it calls, for linking alone."""

    def finalize(self) -> None:
        """Link in what is called; neither optimise it nor hand it to the processor."""
        self._raise_if_finalized()
        for library in dict.fromkeys(self._linking_libraries):
            self._reload_init.update(library._reload_init)  # noqa: SLF001 - as in Numba's own finalize
            self._final_module.link_in(library._get_module_for_linking(), preserve=True)  # noqa: SLF001
        self._finalized = True


@register_pass(mutates_CFG=True, analysis_only=False)
class InnerLowering(NativeLowering):  # type: ignore[misc]
    """Lowering that leaves out what only Python would need."""

    _name = "inner_lowering"

    def run_pass(self, state: Any) -> bool:
        """Lower a function into a library of its own, and tell callers where to find it."""
        state.library = InnerLibrary(state.targetctx.codegen(), state.func_id.func_qualname)
        state.library.enable_object_caching()
        state.flags = state.flags.copy()
        state.flags.no_compile = True
        super().run_pass(state)
        lowered, library = state["cr"], state.library
        descriptor = lowered.fndesc
        place = _dynfunc.make_function(
            descriptor.lookup_module(), descriptor.qualname.split(".")[-1], "an inner function", 0, lowered.env,
            (library,),
        )  # fmt: skip
        state.targetctx.insert_user_function(place, descriptor, [library])
        state.reload_init.extend(library._reload_init)  # noqa: SLF001
        state["cr"] = lowered._replace(cfunc=place)
        return True


class InnerCompiler(CompilerBase):  # type: ignore[misc]
    """Numba's own pipeline with another last step."""

    def define_pipelines(self) -> list[Any]:
        """The passes."""
        pipeline = DefaultPassBuilder.define_nopython_pipeline(self.state, name="inner")
        pipeline.passes = [
            (InnerLowering, text) if step is NativeLowering else (step, text) for step, text in pipeline.passes
        ]
        pipeline.finalize()
        return [pipeline]
