/* Library that another one replaces, for unit/host_stack_after_library_was_replaced.c.
** The test builds it twice, with frames of different sizes and otherwise the same layout.
*/

#define TEXT_(x) #x
#define TEXT(x)  TEXT_(x)

void replaced_call(void (*f)(void));

/* Call a function from a frame of FRAME bytes. */
__asm__("	.text\n"
	"	.globl replaced_call\n"
	"	.type replaced_call, @function\n"
	"replaced_call:\n"
	"	.cfi_startproc\n"
	"	sub $" TEXT(
	  FRAME) ", %rsp\n"
		 "	.cfi_adjust_cfa_offset " TEXT(
		   FRAME) "\n"
			  "	call *%rdi\n"
			  "	add $" TEXT(
			    FRAME) ", %rsp\n"
				   "	.cfi_adjust_cfa_offset -" TEXT(
				     FRAME) "\n"
					    "	ret\n"
					    "	.cfi_endproc\n"
					    "	.size replaced_call, .-replaced_call\n"
					    "	.section .note.GNU-stack, \"\", @progbits\n"
					    "	.text\n");
