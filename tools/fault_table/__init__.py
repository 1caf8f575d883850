"""The faults that tools/faults.py plants: where, the text before and after, the nearest tests."""

from tools.fault_table.core import DECODING, KERNELS, MODELS, RULES, TEXT
from tools.fault_table.fault import Fault
from tools.fault_table.outer import COMMANDS, HOSTS, LAB, STUDIES

__all__ = ["FAULTS", "Fault"]

FAULTS = (*RULES, *DECODING, *KERNELS, *MODELS, *TEXT, *LAB, *STUDIES, *HOSTS, *COMMANDS)
