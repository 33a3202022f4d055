"""The paper's experiments: from settings to numbers and arrays, without files and without figures."""
