"""The paper's figures, drawn from numbers and arrays alone: nothing here loads TensorFlow."""
