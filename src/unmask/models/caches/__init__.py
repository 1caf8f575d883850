"""Caches of keys and values; a cached model is a denoiser."""

from unmask.models.caches.cached import Cached, check_cache
from unmask.models.caches.policies import POLICIES, BlockCache, DelayedCache, DualCache, PrefixCache

__all__ = ["POLICIES", "BlockCache", "Cached", "DelayedCache", "DualCache", "PrefixCache"]
__all__ += ["check_cache"]
