"""Denoisers that wrap another denoiser: guidance, clocks, noise, memory."""
