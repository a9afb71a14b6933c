def has_compiler(a): return False
