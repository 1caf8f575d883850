// Statistics of rows of logits, each tensor read once: token, confidence, margin, entropy, KL.
//
// Plain C++17 without torch: `native.py` calls it on the memory of tensors. The kernel in rows.h
// is compiled once per instruction set, and the best one that the processor has is used.

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <thread>
#include <type_traits>
#include <vector>

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#endif

#define INLINE inline __attribute__((always_inline))

namespace {

constexpr int BLOCK = 2048;  // floats: a block of both tensors fits the first cache
constexpr int64_t NO_HISTORY = -1, UNIFORM = -2;  // slots that name no row
constexpr float LEAST_EXPONENT = -103.97f;  // exp() of anything lower is 0 in float32
constexpr float FLAT = -80.0f;              // exp() of anything lower is negligible
constexpr float ROUNDER = 12582912.0f + 127.0f;  // 1.5 * 2^23, and the bias of an exponent

struct Brain { uint16_t bits; };  // bfloat16
struct Half { uint16_t bits; };   // float16
enum Type { FLOAT32 = 0, BFLOAT16 = 1, FLOAT16 = 2, INT8 = 3 };

struct Row {
  int64_t token;
  double confidence, margin, entropy, kl_prev_cur = 0.0, kl_cur_prev = 0.0;
};

struct Job {
  int dtype;
  const void *now, *past;
  int64_t now_stride, past_stride, rows, vocabulary;
  const int64_t *slot, *tokens;
  int64_t *token;   // [rows]
  double *columns;  // [5, rows]

  void write(int64_t n, const Row &row) const {
    token[n] = row.token;
    const double values[] = {
        row.confidence, row.margin, row.entropy, row.kl_prev_cur, row.kl_cur_prev};
    for (int i = 0; i < 5; ++i) columns[i * rows + n] = values[i];
  }
};

struct ClassJob {
  int dtype;
  const void *logits;
  int64_t stride, rows, vocabulary;
  const int32_t *kinds;  // [vocabulary], below `classes`
  int64_t classes;
  double *sums;   // [rows, classes]
  double *depth;  // [rows]
};

struct ProductJob {
  int dtype;            // of the weight
  const float *panels;  // the rows of x, packed
  const void *weight;   // [outputs, inputs]
  const float *bias;    // [outputs], or null
  int64_t count, outputs, inputs;
  float *out;    // [count, outputs]
  int64_t rows;  // blocks of outputs
};

struct CodeJob {
  int bits;                // of a code: 8 or 4
  const uint32_t *panels;  // the rows of x in bfloat16, packed in pairs of inputs
  const void *codes;       // 8 bits: int8 [outputs, inputs]; 4: [outputs, inputs / 2]
  const void *scale;       // 8 bits: float32 [outputs]; 4: bfloat16 [outputs, inputs / 32]
  const float *bias;       // [outputs], or null
  int64_t count, outputs, inputs;
  uint16_t *out;  // bfloat16 [count, outputs]
  int64_t rows;   // blocks of outputs
};

struct NormJob {
  int dtype;
  const void *x, *weight;  // [rows, size], [size]
  float eps;
  void *out;  // [rows, size]
  int64_t size, rows;
};

struct RotateJob {
  int dtype, table;      // of x, and of the cosines and sines
  const void *x;         // [rows, heads, size]
  const void *cos, *sin; // [places, turned]: row n has place n % places
  void *out;             // [rows, heads, size]
  int64_t heads, size, turned, places, rows;
};

namespace plain {
#define LANES 4
#include "rows.h"
#undef LANES
}  // namespace plain

#if defined(__x86_64__)
#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2,fma"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx2,fma")
#endif
namespace avx2 {
#define LANES 8
#include "rows.h"
#include "product.h"
#include "layer.h"
#undef LANES
}  // namespace avx2
#if defined(__clang__)
#pragma clang attribute pop
#pragma clang attribute push(__attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,fma"))), apply_to = function)
#else
#pragma GCC pop_options
#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,fma,prefer-vector-width=512")
#pragma GCC diagnostic push  // GCC 12 takes the undefined lanes of its own intrinsics for a mistake
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"
#endif
namespace avx512 {
#define LANES 16
#include "rows.h"
#include "product.h"
#undef LANES
}  // namespace avx512
#if defined(__clang__)
#pragma clang attribute pop
#pragma clang attribute push(__attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512bf16"))), apply_to = function)
#else
#pragma GCC pop_options
#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,avx512bf16,prefer-vector-width=512")
#endif
namespace brain {
#include "codes.h"
}  // namespace brain
#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC diagnostic pop
#pragma GCC pop_options
#endif
#endif

// Level 0 is plain, 1 is AVX2 with FMA, 2 is AVX-512.
int best_level() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
    return 2;
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return 1;
#endif
  return 0;
}

// Whether the processor multiplies bfloat16 itself (AVX-512 BF16).
bool multiplies_brain() {
#if defined(__x86_64__)
  unsigned a = 0, b = 0, c = 0, d = 0;
  return best_level() == 2 && __get_cpuid_count(7, 1, &a, &b, &c, &d) && (a >> 5 & 1);
#else
  return false;
#endif
}

// The function of that name for an instruction set.
#if defined(__x86_64__)
#define KERNEL(name, level) \
  ((level) == 2 ? avx512::name : (level) == 1 ? avx2::name : plain::name)
#else
#define KERNEL(name, level) plain::name
#endif

// Threads take rows one by one; the result of a row does not depend on its thread.
template <class AnyJob>
void run(const AnyJob &job, void (*kernel)(const AnyJob &, int64_t), int threads) {
  std::atomic<int64_t> next{0};
  auto work = [&] {
    for (int64_t n; (n = next++) < job.rows;) kernel(job, n);
  };
  std::vector<std::thread> others;
  for (int i = 1; i < threads; ++i) {
    try {
      others.emplace_back(work);
    } catch (const std::exception &) {
      break;  // no more threads: the running ones do all rows
    }
  }
  work();
  for (auto &other : others) other.join();
}

}  // namespace

extern "C" {

// Increased with the signatures below, so that an older build is refused.
int unmask_reduce_version() { return 6; }

int unmask_reduce_level() { return best_level(); }

// `level` is an upper limit: a processor or a build without it uses its best one. Returns 0 if a
// slot is not below `past_rows`, or a token not below `vocabulary`; then nothing is written.
int unmask_reduce(int dtype, const void *now, int64_t now_stride, int64_t rows, int64_t vocabulary,
                  const void *past, int64_t past_stride, int64_t past_rows, const int64_t *slot,
                  const int64_t *tokens, int64_t *token, double *columns, int threads, int level) {
  for (int64_t n = 0; n < rows; ++n)
    if ((slot && slot[n] >= past_rows) || (tokens && tokens[n] >= vocabulary)) return 0;
  const Job job{dtype, now,  past,   now_stride, past_stride, rows,
                vocabulary, slot, tokens, token,      columns};
  run(job, KERNEL(reduce, std::min(level, best_level())), (int)std::min<int64_t>(threads, rows));
  return 1;
}

void unmask_sum_classes(int dtype, const void *logits, int64_t stride, int64_t rows,
                        int64_t vocabulary, const int32_t *kinds, int64_t classes, double *sums,
                        double *depth, int threads, int level) {
  const ClassJob job{dtype, logits, stride, rows, vocabulary, kinds, classes, sums, depth};
  run(job, KERNEL(sum_classes, std::min(level, best_level())),
      (int)std::min<int64_t>(threads, rows));
}

// x W^T + b: float32 [count, inputs], with room for the rows in whole panels of 16 in `panels`.
// Returns 0 if the processor does not have the level, 1 or 2; then nothing is written.
int unmask_multiply(int level, int dtype, const float *x, float *panels, const void *weight,
                    const float *bias, int64_t count, int64_t outputs, int64_t inputs, float *out,
                    int threads) {
#if defined(__x86_64__)
  if (level >= 1 && level <= best_level()) {
    const bool wide = level == 2;
    (wide ? avx512::pack_panels : avx2::pack_panels)(x, count, inputs, panels);
    const int64_t block = wide ? avx512::OUTPUTS : avx2::OUTPUTS;
    const int64_t blocks = (outputs + block - 1) / block;
    const ProductJob job{dtype, panels, weight, bias, count, outputs, inputs, out, blocks};
    run(job, wide ? avx512::multiply : avx2::multiply, (int)std::min<int64_t>(threads, blocks));
    return 1;
  }
#endif
  return 0;
}

// x W^T + b: bfloat16 [count, inputs] with `inputs` even (4 bits: a multiple of 32), and room for
// 16 * inputs * ceil(count / 16) numbers of x in `panels`. Returns 0 if the processor does not
// multiply bfloat16; then nothing is written.
int unmask_multiply_codes(int bits, const uint16_t *x, uint32_t *panels, const void *codes,
                          const void *scale, const float *bias, int64_t count, int64_t outputs,
                          int64_t inputs, uint16_t *out, int threads) {
#if defined(__x86_64__)
  if (multiplies_brain()) {
    // A pair of inputs has the size of a float, and is moved like one.
    avx2::pack_panels((const float *)(const void *)x, count, inputs / 2, (float *)(void *)panels);
    const int64_t blocks = (outputs + brain::OUTPUTS - 1) / brain::OUTPUTS;
    const CodeJob job{bits, panels, codes, scale, bias, count, outputs, inputs, out, blocks};
    run(job, brain::multiply_codes, (int)std::min<int64_t>(threads, blocks));
    return 1;
  }
#endif
  return 0;
}

// weight * (x / rms(x)). Returns 0 if the processor has no AVX2; then nothing is written.
int unmask_normalise(int dtype, const void *x, const void *weight, float eps, int64_t rows,
                     int64_t size, void *out, int threads) {
#if defined(__x86_64__)
  if (best_level() >= 1) {
    run(NormJob{dtype, x, weight, eps, out, size, rows}, avx2::normalise, threads);
    return 1;
  }
#endif
  return 0;
}

// Rotary positions in half-split layout. Returns 0 if the processor has no AVX2.
int unmask_rotate(int dtype, int table, const void *x, const void *cos, const void *sin,
                  int64_t rows, int64_t heads, int64_t size, int64_t turned, int64_t places,
                  void *out, int threads) {
#if defined(__x86_64__)
  if (best_level() >= 1) {
    run(RotateJob{dtype, table, x, cos, sin, out, heads, size, turned, places, rows}, avx2::rotate,
        threads);
    return 1;
  }
#endif
  return 0;
}
}
