/* SPDX-License-Identifier: MIT */
/*
 * See stubs.h. Each stub looks at its arguments, touches only registers that a call may destroy,
 * and jumps on: the function behind it sees the caller's own return address and stack.
 */
#if defined(__x86_64__) && !defined(__ILP32__)

#define ENTRY_SYSCALL_COUNT 512
#define RTLD_DEEPBIND	    8
#define SYS_vfork	    58

	.text

.macro public name
	.globl	\name
	.type	\name, @function
	.p2align 4
\name:
	.cfi_startproc
.endm

.macro end name
	.cfi_endproc
	.size	\name, . - \name
.endm

/* Around a call into C: all argument registers, and the stack on a multiple of 16. */
.macro save_arguments
	pushq	%rdi
	.cfi_adjust_cfa_offset 8
	pushq	%rsi
	.cfi_adjust_cfa_offset 8
	pushq	%rdx
	.cfi_adjust_cfa_offset 8
	pushq	%rcx
	.cfi_adjust_cfa_offset 8
	pushq	%r8
	.cfi_adjust_cfa_offset 8
	pushq	%r9
	.cfi_adjust_cfa_offset 8
	pushq	%rax
	.cfi_adjust_cfa_offset 8
.endm

.macro restore_arguments
	popq	%rax
	.cfi_adjust_cfa_offset -8
	popq	%r9
	.cfi_adjust_cfa_offset -8
	popq	%r8
	.cfi_adjust_cfa_offset -8
	popq	%rcx
	.cfi_adjust_cfa_offset -8
	popq	%rdx
	.cfi_adjust_cfa_offset -8
	popq	%rsi
	.cfi_adjust_cfa_offset -8
	popq	%rdi
	.cfi_adjust_cfa_offset -8
.endm

/*
 * long syscall(long nr, ...): numbers with a class go to its handler, which takes the arguments
 * as they are; all others to the next syscall().
 */
public syscall
	cmpq	$(ENTRY_SYSCALL_COUNT - 1), %rdi
	ja	1f
	leaq	entry_syscall_class(%rip), %r11
	movzbl	(%r11,%rdi), %r11d
	testl	%r11d, %r11d
	jnz	2f
1:	jmp	*stub_next_syscall(%rip)
2:	leaq	entry_syscall_handlers(%rip), %r10
	jmp	*(%r10,%r11,8)
end syscall

/* void *dlopen(const char *file, int mode) */
public dlopen
	andl	$~RTLD_DEEPBIND, %esi
	jmp	*stub_next_dlopen(%rip)
end dlopen

/*
 * void *dlmopen(Lmid_t space, const char *file, int mode): only in the base name space (0) is
 * there a preload that deep binding would pass by.
 */
public dlmopen
	testq	%rdi, %rdi
	jnz	1f
	andl	$~RTLD_DEEPBIND, %edx
1:	jmp	*stub_next_dlmopen(%rip)
end dlmopen

/*
 * void *dlsym(void *handle, const char *name) and void *dlvsym(handle, name, version). RTLD_DEFAULT
 * (0) finds us, and RTLD_NEXT (-1) is for who calls on; both ask who the caller is.
 */
.macro symbol_lookup name
public \name
	leaq	1(%rdi), %rax
	cmpq	$1, %rax
	ja	stub_handle_\name
	save_arguments
	movq	%rsi, %rdi
	call	entry_find
	testq	%rax, %rax
	jnz	1f
	.cfi_remember_state
	restore_arguments
	jmp	*stub_next_\name(%rip)
1:	.cfi_restore_state
	addq	$56, %rsp
	.cfi_adjust_cfa_offset -56
	ret
end \name
.endm

symbol_lookup dlsym
symbol_lookup dlvsym

/*
 * pid_t vfork(void): the return address travels in a register, for the child overwrites the
 * stack. Parent and child share this memory: the child counts itself in and hides its parent's
 * thread block, the parent puts both back from registers that the kernel kept. (Under a tool that
 * makes vfork a fork, that is right as well.)
 */
	.globl	__vfork
	.type	__vfork, @function
	.set	__vfork, vfork
public vfork
	popq	%rdi
	.cfi_adjust_cfa_offset -8
	.cfi_register %rip, %rdi
	movq	vfork_depth@gottpoff(%rip), %r8
	movl	%fs:(%r8), %r9d
	movq	thread_self@gottpoff(%rip), %r10
	movq	%fs:(%r10), %rdx
	movl	$SYS_vfork, %eax
	syscall
	pushq	%rdi
	.cfi_adjust_cfa_offset 8
	.cfi_rel_offset %rip, 0
	cmpq	$-4095, %rax
	jae	2f
	testl	%eax, %eax
	jnz	1f
	leal	1(%r9), %ecx
	movl	%ecx, %fs:(%r8)
	movq	$0, %fs:(%r10)
	ret
1:	movl	%r9d, %fs:(%r8)
	movq	%rdx, %fs:(%r10)
	pushq	%rax
	.cfi_adjust_cfa_offset 8
	call	vfork_ended
	popq	%rax
	.cfi_adjust_cfa_offset -8
	ret
2:	movq	%rax, %rdi
	negq	%rdi
	jmp	stub_error
end vfork

/* First uses: look the functions up, then go where the stub was going. */
.macro first_use name
	.data
	.hidden	stub_next_\name
	.globl	stub_next_\name
	.type	stub_next_\name, @object
	.size	stub_next_\name, 8
	.p2align 3
stub_next_\name:
	.quad	first_\name
	.text
	.type	first_\name, @function
first_\name:
	.cfi_startproc
	save_arguments
	call	stubs_resolve
	restore_arguments
	jmp	*stub_next_\name(%rip)
	.cfi_endproc
	.size	first_\name, . - first_\name
.endm

first_use syscall
first_use dlsym
first_use dlvsym
first_use dlopen
first_use dlmopen

	.hidden	entry_syscall_class
	.hidden	entry_syscall_handlers
	.hidden	entry_find
	.hidden	stubs_resolve
	.hidden	stub_error
	.hidden	stub_handle_dlsym
	.hidden	stub_handle_dlvsym
	.hidden	vfork_ended
	.hidden	vfork_depth
	.hidden	thread_self
#endif

	.section .note.GNU-stack, "", @progbits
