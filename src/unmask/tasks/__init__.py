"""Problems with exact checkers: the tasks that the embedded model was trained for."""

from unmask.tasks.code import CODE
from unmask.tasks.grids import GRIDS
from unmask.tasks.lists import LISTS
from unmask.tasks.problem import SPLITS, Problem, Split, Task, split_of
from unmask.tasks.sums import SUMS
from unmask.tasks.words import WORDS

TASKS = {task.name: task for task in (WORDS, CODE, *LISTS, *GRIDS, SUMS)}

__all__ = ["SPLITS", "TASKS", "Problem", "Split", "Task", "split_of"]
