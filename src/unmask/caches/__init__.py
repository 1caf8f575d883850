"""Caches of keys and values: each wraps a loaded model and is a denoiser itself."""

from unmask.caches.cached import Cached, check_cache
from unmask.caches.policies import POLICIES, BlockCache, DelayedCache, DualCache, PrefixCache

__all__ = [
    "POLICIES",
    "BlockCache",
    "Cached",
    "DelayedCache",
    "DualCache",
    "PrefixCache",
    "check_cache",
]
