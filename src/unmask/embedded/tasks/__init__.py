"""The tasks that the embedded model was trained on; every answer is checked exactly."""

from unmask.embedded.tasks.code import CODE
from unmask.embedded.tasks.grids import GRIDS
from unmask.embedded.tasks.lists import LISTS
from unmask.embedded.tasks.problem import SPLITS, Problem, Split, Task, split_of
from unmask.embedded.tasks.sums import SUMS
from unmask.embedded.tasks.words import WORDS

TASKS = {task.name: task for task in (WORDS, CODE, *LISTS, *GRIDS, SUMS)}

__all__ = ["SPLITS", "TASKS", "Problem", "Split", "Task", "split_of"]
