// x W^T in float32: included by reduce.cpp for AVX2 and for AVX-512.
//
// A tile is 6 outputs of up to 4 panels of x (AVX2: one). A panel holds 16 rows side by side, so
// weights are read as they are stored, one number for all rows. A result is the sum, in order, of
// chains of fused multiply-adds over 384 inputs each (AVX2: 192). MKL adds in the same order with
// the same instructions, so the bits are the same. On AMD's processors MKL uses AVX2 even if there
// is AVX-512. A row's result does not depend on the other rows.

constexpr bool WIDE = LANES == 16;
constexpr int TILE = 6, PANEL = 16, VECTORS = PANEL / LANES, CHAIN = WIDE ? 384 : 192;
constexpr int PART = WIDE ? 96 : CHAIN;  // inputs; of 4 panels the first cache has room for 96
constexpr int MOST = WIDE ? 4 : 1;  // panels of a tile: its sums fill the registers
constexpr int OUTPUTS = 16 * TILE;  // of the weights that stay in the second cache
constexpr int PANELS = WIDE ? 16 : 8;  // of x that stay there beside them

struct ProductScratch {
  alignas(64) float weight[OUTPUTS * PART];
  alignas(64) float sums[PANELS * OUTPUTS * PANEL];
  alignas(64) float chains[WIDE ? PANELS * OUTPUTS * PANEL : 1];  // begun, not added yet
};

INLINE Floats widen(const int8_t *from) {
#if LANES == 16
  return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128((const __m128i *)from)));
#else
  return _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_loadl_epi64((const __m128i *)from)));
#endif
}

// How many inputs the chain has that begins at input k.
INLINE int chain_at(int64_t k, int64_t inputs) {
  if (WIDE && inputs > CHAIN && inputs < 2 * CHAIN)  // two chains, as equal as they can be
    return (int)(k ? inputs - k : (inputs + 1) / 2);
  return (int)std::min<int64_t>(CHAIN, inputs - k);
}

// Where the sums of vector v of output i of a tile are.
constexpr int place(int v, int i) {
  return (v / VECTORS * OUTPUTS + i) * PANEL + v % VECTORS * LANES;
}

// A part of the inputs of a tile, which may begin its chains, and end them.
struct Part {
  const float *weight;
  int64_t stride;  // from output to output
  const float *x;
  int64_t panel;  // from panel to panel
  int count;
  bool begins, ends;
};

// chains[P, TILE, PANEL] continue over a part; where they end, sums[P, TILE, PANEL] += chains.
template <int P>
INLINE void add_tile(const Part &part, float *chains, float *sums) {
  Floats acc[P * VECTORS][TILE] = {};
  if (WIDE && !part.begins)
#pragma GCC unroll 4
    for (int v = 0; v < P * VECTORS; ++v)
#pragma GCC unroll 6
      for (int i = 0; i < TILE; ++i) acc[v][i] = load(chains + place(v, i));
  const float *x = part.x, *weight = part.weight;
#pragma GCC unroll 4
  for (int k = 0; k < part.count; ++k, x += PANEL) {
    Floats rows[P * VECTORS];
#pragma GCC unroll 4
    for (int v = 0; v < P * VECTORS; ++v)
      rows[v] = load(x + v / VECTORS * part.panel + v % VECTORS * LANES);
#pragma GCC unroll 6
    for (int i = 0; i < TILE; ++i) {
      const float w = weight[i * part.stride + k];
#pragma GCC unroll 4
      for (int v = 0; v < P * VECTORS; ++v) acc[v][i] += rows[v] * w;
    }
  }
#pragma GCC unroll 4
  for (int v = 0; v < P * VECTORS; ++v)
#pragma GCC unroll 6
    for (int i = 0; i < TILE; ++i) {
      float *to = sums + place(v, i);
      if (!WIDE || part.ends)
        store(to, load(to) + acc[v][i]);
      else
        store(chains + place(v, i), acc[v][i]);
    }
}

INLINE void add_tiles([[maybe_unused]] int panels, const Part &part, float *chains, float *sums) {
#if LANES == 16
  switch (panels) {
    case 2: return add_tile<2>(part, chains, sums);
    case 3: return add_tile<3>(part, chains, sums);
    case 4: return add_tile<4>(part, chains, sums);
  }
#endif
  add_tile<1>(part, chains, sums);
}

// 8 numbers of 8 rows that lie `row` apart become 8 numbers of 8 columns that lie `column` apart.
INLINE void turn(const float *from, int64_t row, float *to, int64_t column) {
  __m256 r[8], s[8];
  for (int i = 0; i < 8; ++i) r[i] = _mm256_loadu_ps(from + i * row);
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
    _mm256_storeu_ps(to + i * column, _mm256_permute2f128_ps(r[i], r[i + 4], 0x20));
    _mm256_storeu_ps(to + (i + 4) * column, _mm256_permute2f128_ps(r[i], r[i + 4], 0x31));
  }
}

// The rows of x in panels, input by input; the last panel is filled up with zeros.
void pack_panels(const float *x, int64_t rows, int64_t inputs, float *panels) {
  for (int64_t first = 0; first < (rows + PANEL - 1) / PANEL * PANEL; first += 8) {
    float *to = panels + first / PANEL * PANEL * inputs + first % PANEL;
    int64_t k = 0;
    for (; first + 8 <= rows && k + 8 <= inputs; k += 8)
      turn(x + first * inputs + k, inputs, to + k * PANEL, PANEL);
    for (; k < inputs; ++k)
      for (int64_t i = 0; i < 8; ++i)
        to[k * PANEL + i] = first + i < rows ? x[(first + i) * inputs + k] : 0.0f;
  }
}

// Rows of a weight as floats, `PART` apart.
template <class T>
INLINE void widen_rows(const T *from, int64_t stride, int rows, int count, float *to) {
  for (int i = 0; i < rows; ++i, from += stride, to += PART) {
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
      for (int i = 0; i < PANEL; i += LANES) store(sums + i, start);
    }
}

// The sums of up to 8 rows, to rows that lie `stride` apart.
INLINE void put_sums(const float *sums, int outputs, float *out, int rows, int64_t stride) {
  int n = 0;
  for (; rows == 8 && n + 8 <= outputs; n += 8) turn(sums + n * PANEL, PANEL, out + n, stride);
  for (; n < outputs; ++n)
    for (int m = 0; m < rows; ++m) out[m * stride + n] = sums[n * PANEL + m];
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
  const int64_t stride = as_stored ? inputs : PART;
  for (int64_t row = 0; row < job.count; row += PANELS * PANEL) {
    const int rows = (int)std::min<int64_t>(PANELS * PANEL, job.count - row);
    const int panels = (rows + PANEL - 1) / PANEL;
    begin_sums(job.bias ? job.bias + first : nullptr, outputs, scratch.sums);
    int64_t chain = 0, end = chain_at(0, inputs), count;
    for (int64_t k = 0; k < inputs; k += count) {
      count = std::min<int64_t>(PART, end - k);
      if (!as_stored) widen_rows(weight + k, inputs, outputs, (int)count, scratch.weight);
      const float *wide = as_stored ? (const float *)(const void *)(weight + k) : scratch.weight;
      const T *next = weight + (k + count < inputs ? k + count : OUTPUTS * inputs);
      Part part{wide, stride, nullptr, PANEL * inputs, (int)count, k == chain, k + count == end};
      for (int p = 0; p < panels; p += MOST)
        for (int n = 0; n < outputs; n += TILE) {
          if (p == 0) ask_for(next + n * inputs, inputs, TILE, PART);
          part.weight = wide + n * stride;
          part.x = job.panels + (row + p * PANEL) * inputs + k * PANEL;
          const int64_t at = (p * OUTPUTS + n) * PANEL;
          add_tiles(std::min(MOST, panels - p), part, scratch.chains + (WIDE ? at : 0),
                    scratch.sums + at);
        }
      if (part.ends) {
        chain = end;
        end += chain_at(end, inputs);
      }
    }
    for (int m = 0; m < rows; m += 8)
      put_sums(scratch.sums + m / PANEL * OUTPUTS * PANEL + m % PANEL, outputs,
               job.out + (row + m) * job.outputs + first, std::min(8, rows - m), job.outputs);
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
