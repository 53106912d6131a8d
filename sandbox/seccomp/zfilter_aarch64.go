package seccomp

var filterARM64 = [...]Instruction{}
