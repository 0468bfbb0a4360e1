/* Hides instruction sets from a program, on Linux with an Intel processor that can trap CPUID:

       gcc -shared -fPIC -O2 cpuid_mask.c -o cpuid_mask.so
       CPUID_MASK=avx2 LD_PRELOAD=./cpuid_mask.so PROGRAM

   CPUID_MASK is the best set that the program still finds: `sse4.1`, `avx2`, `avx-vnni`, `avx512` or `avx512-vnni`. The processor still
   executes every instruction; only code that asks CPUID does not find it. The C library has asked before this code starts. */

#define _GNU_SOURCE
#include <cpuid.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

/* From asm/prctl.h, whose older versions lack it. */
#define ARCH_CPUID_SET 0x1012

enum set { SSE41, AVX2, AVX_VNNI, AVX512, AVX512_VNNI };
static const char *const names[] = {"sse4.1", "avx2", "avx-vnni", "avx512", "avx512-vnni"};
static enum set best;

static void permit_cpuid(long permitted) { syscall(SYS_arch_prctl, ARCH_CPUID_SET, permitted); }

/* Clears bits of a register. */
static void hide(greg_t *reg, uint32_t bits) { *reg &= ~(greg_t)bits; }

static void hide_features(uint32_t leaf, uint32_t subleaf, greg_t *a, greg_t *b, greg_t *c, greg_t *d) {
    if (leaf == 1 && best < AVX2) {
        hide(c, bit_FMA | bit_AVX | bit_F16C);
    } else if (leaf == 7 && subleaf == 0) {
        if (best < AVX2) hide(b, 1u << 5 | 1u << 3 | 1u << 8);
        if (best < AVX512) {
            hide(b, 1u << 16 | 1u << 17 | 1u << 21 | 1u << 28 | 1u << 30 | 1u << 31);
            hide(c, 1u << 1 | 1u << 6 | 1u << 12 | 1u << 14);
            hide(d, 1u << 8 | 1u << 23);
        }
        if (best < AVX512_VNNI) hide(c, 1u << 11);
        hide(d, 1u << 22 | 1u << 24 | 1u << 25); /* AMX */
    } else if (leaf == 7 && subleaf == 1) {
        if (best < AVX_VNNI || best == AVX512) hide(a, 1u << 4);
        if (best < AVX512_VNNI) hide(a, 1u << 5);
        hide(a, 1u << 21);
        hide(d, 1u << 4 | 1u << 5 | 1u << 8 | 1u << 10 | 1u << 19);
    } else if (leaf == 0xd && subleaf == 0) {
        hide(a, 3u << 17 | (best < AVX512 ? 7u << 5 : 0) | (best < AVX2 ? 1u << 2 : 0));
    } else if (leaf == 0x1d || leaf == 0x1e) {
        *a = *b = *c = *d = 0;
    }
}

static void on_fault(int number, siginfo_t *info, void *opaque) {
    greg_t *regs = ((ucontext_t *)opaque)->uc_mcontext.gregs;
    const unsigned char *code = (const unsigned char *)regs[REG_RIP];
    (void)info;
    if (code[0] != 0x0f || code[1] != 0xa2) {
        signal(number, SIG_DFL);
        return;
    }
    uint32_t leaf = regs[REG_RAX], subleaf = regs[REG_RCX], a, b, c, d;
    permit_cpuid(1);
    __cpuid_count(leaf, subleaf, a, b, c, d);
    permit_cpuid(0);
    regs[REG_RAX] = a, regs[REG_RBX] = b, regs[REG_RCX] = c, regs[REG_RDX] = d;
    hide_features(leaf, subleaf, &regs[REG_RAX], &regs[REG_RBX], &regs[REG_RCX], &regs[REG_RDX]);
    regs[REG_RIP] += 2;
}

static void stop(const char *message) {
    write(STDERR_FILENO, message, strlen(message));
    _exit(2);
}

__attribute__((constructor)) static void start(void) {
    const char *wanted = getenv("CPUID_MASK");
    for (best = SSE41; !wanted || strcmp(wanted, names[best]); best++) {
        if (best == AVX512_VNNI) stop("error: expected CPUID_MASK to be `sse4.1`, `avx2`, `avx-vnni`, `avx512` or `avx512-vnni`\n");
    }
    struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_NODEFER};
    sigaction(SIGSEGV, &action, NULL);
    if (syscall(SYS_arch_prctl, ARCH_CPUID_SET, 0)) stop("error: expected a processor that can trap CPUID, found that it cannot\n");
}
