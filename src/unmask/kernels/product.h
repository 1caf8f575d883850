// x W^T in float32: included by reduce.cpp for AVX2.
//
// A tile is 6 outputs of 16 rows of x. The rows of x lie side by side in panels of 16, so weights
// are read as they are stored, one number for 16 rows. A result is the sum, in order, of chains of
// fused multiply-adds over 192 inputs each. MKL adds in this order on these processors, so the bits
// are the same, and a row's result does not depend on the other rows.

constexpr int TILE = 6, PANEL = 2 * LANES, CHAIN = 192;
constexpr int OUTPUTS = 16 * TILE;  // of the weights that stay in the second cache
constexpr int PANELS = 8;           // of x that stay there beside them

struct ProductScratch {
  alignas(64) float weight[OUTPUTS * CHAIN];
  alignas(64) float sums[PANELS * OUTPUTS * PANEL];
};

INLINE Floats widen(const int8_t *from) {
  return _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_loadl_epi64((const __m128i *)from)));
}

// sums[6, 16] += the chains over `count` inputs.
INLINE void add_tile(const float *weight, int64_t stride, const float *x, int count, float *sums) {
  Floats left[TILE] = {}, right[TILE] = {};
#pragma GCC unroll 4
  for (int k = 0; k < count; ++k, x += PANEL) {
    const Floats x0 = load(x), x1 = load(x + LANES);
#pragma GCC unroll 6
    for (int i = 0; i < TILE; ++i) {
      const float w = weight[i * stride + k];
      left[i] += x0 * w;
      right[i] += x1 * w;
    }
  }
#pragma GCC unroll 6
  for (int i = 0; i < TILE; ++i, sums += PANEL) {
    store(sums, load(sums) + left[i]);
    store(sums + LANES, load(sums + LANES) + right[i]);
  }
}

// 8 inputs of 8 rows, from rows that lie `stride` apart to columns that lie side by side.
INLINE void turn(const float *from, int64_t stride, float *to) {
  __m256 r[8], s[8];
  for (int i = 0; i < 8; ++i) r[i] = _mm256_loadu_ps(from + i * stride);
  for (int i = 0; i < 8; i += 2) {
    s[i] = _mm256_unpacklo_ps(r[i], r[i + 1]);
    s[i + 1] = _mm256_unpackhi_ps(r[i], r[i + 1]);
  }
  for (int i = 0; i < 8; i += 4)
    for (int j = 0; j < 2; ++j) {
      r[i + 2 * j] = _mm256_shuffle_ps(s[i + j], s[i + j + 2], 0x44);
      r[i + 2 * j + 1] = _mm256_shuffle_ps(s[i + j], s[i + j + 2], 0xee);
    }
  for (int i = 0; i < 4; ++i) {
    _mm256_storeu_ps(to + i * PANEL, _mm256_permute2f128_ps(r[i], r[i + 4], 0x20));
    _mm256_storeu_ps(to + (i + 4) * PANEL, _mm256_permute2f128_ps(r[i], r[i + 4], 0x31));
  }
}

// The rows of x in panels of 16, input by input; the last panel is filled up with zeros.
void pack_panels(const float *x, int64_t rows, int64_t inputs, float *panels) {
  for (int64_t first = 0; first < (rows + PANEL - 1) / PANEL * PANEL; first += LANES) {
    float *to = panels + first / PANEL * PANEL * inputs + first % PANEL;
    int64_t k = 0;
    for (; first + LANES <= rows && k + LANES <= inputs; k += LANES)
      turn(x + first * inputs + k, inputs, to + k * PANEL);
    for (; k < inputs; ++k)
      for (int64_t i = 0; i < LANES; ++i)
        to[k * PANEL + i] = first + i < rows ? x[(first + i) * inputs + k] : 0.0f;
  }
}

// Rows of a weight as floats; rows of 192 lie side by side.
template <class T>
INLINE void widen_rows(const T *from, int64_t stride, int rows, int count, float *to) {
  for (int i = 0; i < rows; ++i, from += stride, to += CHAIN) {
    int k = 0;
    for (; k + LANES <= count; k += LANES) store(to + k, widen(from + k));
    if (k == count) continue;
    T last[LANES] = {};
    std::memcpy(last, from + k, sizeof(T) * (count - k));
    store(to + k, widen(last));
  }
}

// The biases of all outputs, or zeros, for every row of every panel.
INLINE void begin_sums(const float *bias, int outputs, float *sums) {
  for (int p = 0; p < PANELS; ++p)
    for (int n = 0; n < OUTPUTS; ++n, sums += PANEL) {
      const Floats start = all(bias && n < outputs ? bias[n] : 0.0f);
      store(sums, start);
      store(sums + LANES, start);
    }
}

// Asks for the next part of `rows` rows of a weight, so that it is there when its turn comes.
template <class T>
INLINE void ask_for(const T *from, int64_t stride, int rows, int count) {
  for (int i = 0; i < rows; ++i, from += stride)
    for (int k = 0; k < count; k += 64 / (int)sizeof(T)) __builtin_prefetch(from + k, 0, 2);
}

// A block of outputs for all rows of x.
template <class T>
INLINE void multiply_as(const ProductJob &job, int64_t block) {
  static thread_local ProductScratch scratch;
  const int64_t first = block * OUTPUTS, inputs = job.inputs;
  const int outputs = (int)std::min<int64_t>(OUTPUTS, job.outputs - first);
  const T *weight = (const T *)job.weight + first * inputs;
  const bool as_stored = std::is_same<T, float>::value && outputs % TILE == 0;
  const int64_t stride = as_stored ? inputs : CHAIN;
  for (int64_t row = 0; row < job.count; row += PANELS * PANEL) {
    const int rows = (int)std::min<int64_t>(PANELS * PANEL, job.count - row);
    begin_sums(job.bias ? job.bias + first : nullptr, outputs, scratch.sums);
    for (int64_t k = 0; k < inputs; k += CHAIN) {
      const int count = (int)std::min<int64_t>(CHAIN, inputs - k);
      if (!as_stored) widen_rows(weight + k, inputs, outputs, count, scratch.weight);
      const float *wide = as_stored ? (const float *)(const void *)(weight + k) : scratch.weight;
      const T *next = weight + (k + CHAIN < inputs ? k + CHAIN : OUTPUTS * inputs);
      for (int p = 0; p * PANEL < rows; ++p)
        for (int n = 0; n < outputs; n += TILE) {
          if (p == 0) ask_for(next + n * inputs, inputs, TILE, CHAIN);
          add_tile(wide + n * stride, stride, job.panels + (row + p * PANEL) * inputs + k * PANEL,
                   count, scratch.sums + (p * OUTPUTS + n) * PANEL);
        }
    }
    for (int m = 0; m < rows; ++m) {
      const float *sums = scratch.sums + m / PANEL * OUTPUTS * PANEL + m % PANEL;
      float *out = job.out + (row + m) * job.outputs + first;
      for (int n = 0; n < outputs; ++n) out[n] = sums[n * PANEL];
    }
  }
}

void multiply(const ProductJob &job, int64_t block) {
  switch (job.dtype) {
    case FLOAT32: return multiply_as<float>(job, block);
    case BFLOAT16: return multiply_as<Brain>(job, block);
    case FLOAT16: return multiply_as<Half>(job, block);
    case INT8: return multiply_as<int8_t>(job, block);
  }
}
