"""lm-evaluation-harness: the model class `unmask` and a launcher for the command line of lm_eval.

Importing this package registers the class. It needs the extra `lm-eval`.
"""

from unmask.errors import RequestError

try:
    import lm_eval.models  # noqa: F401  (first: lm_eval fills its registry only if it is empty)
except ImportError as error:
    missing = (error.name or "lm_eval").partition(".")[0]
    raise RequestError(
        f"the harness needs {missing}, which is not installed; pip install 'unmask[lm-eval]'"
    ) from None

from unmask.integrations.lm_eval.evaluate import simple_evaluate
from unmask.integrations.lm_eval.model import UnmaskLM

__all__ = ["UnmaskLM", "simple_evaluate"]
