#include "textflag.h"

// returnAtOnce is a signal handler that does nothing.
TEXT ·returnAtOnce(SB), NOSPLIT|NOFRAME, $0-0
	RET

// returnAtOncePC is its address, without a wrapper of Go's calling convention.
DATA ·returnAtOncePC(SB)/8, $·returnAtOnce(SB)
GLOBL ·returnAtOncePC(SB), NOPTR|RODATA, $8
