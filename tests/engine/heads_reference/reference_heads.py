"""Published drafting heads, written and computed from the public sources alone.

Each writer makes a folder as its project publishes them, with random weights for a given target,
and returns what the head must compute: naive, in float64, from the numbers as stored. Nothing here
knows the engine. The sources and facts of each format head the module that has it: medusa, eagle,
eagle3 (the computation) and eagle3_folders (its four spellings).

Where the sources disagree, or left a choice:
- Aux layer ids. SpecForge and DeepSpec name a layer whose output is tapped; speculators and vLLM
  name a layer whose input is, one more for the same state, and vLLM reads `eagle_config` that way
  too. SGLang adds one only where the first id is 1 (pull request 25454). Here a format is read as
  the project that writes it reads it.
- Rotary positions. SafeAILab, SpecForge and DeepSpec give row i position i, speculators i + 1. With
  plain rotary embeddings it is the same function; a test holds that.
- `rope_theta` missing from an official config means 10000 to its loader, whatever the target has;
  the first SpecForge ignored the key even where it was written. Here a written key counts.
- `norm_before_residual` missing means false to speculators' class and true to vLLM. It is always
  written here.
- `fc` has a bias in speculators' first eagle3 class and none in any later one. None here.
- The official files may keep d2t and t2d where both vocabularies are one; here they do not.
"""

from tests.engine.heads_reference.eagle import EagleReference, write_eagle
from tests.engine.heads_reference.eagle3 import Eagle3Output, Eagle3Reference
from tests.engine.heads_reference.eagle3_folders import write_eagle3, write_speculators
from tests.engine.heads_reference.medusa import MedusaReference, write_medusa

__all__ = [
    "Eagle3Output",
    "Eagle3Reference",
    "EagleReference",
    "MedusaReference",
    "write_eagle",
    "write_eagle3",
    "write_medusa",
    "write_speculators",
]
