"""The arena: every rule along its own knob, on the same prompts, canvases and EOS policies."""
