// x W^T + b in bfloat16 with a weight of 8 or 4 bits: included by reduce.cpp for AVX-512 BF16.
//
// A tile is 6 outputs of up to 4 panels of 16 rows of x. A panel holds two inputs of 16 rows side by
// side, then the next two, because one instruction multiplies and adds two of them. The weight is
// widened to bfloat16 a part at a time, which stays in the first cache. Every result is one chain of
// sums over all inputs, rounded once, so it does not depend on the other rows.

constexpr int TILE = 6, PANEL = 16, PAIRS = 96;
constexpr int OUTPUTS = 16 * TILE;   // of the weight that are widened at once
constexpr int PANELS = 16, WIDE = 4;  // of x: beside these outputs, and in a tile
constexpr int GROUP = 32;            // inputs that share a scale in 4 bits

struct CodeScratch {
  alignas(64) uint32_t weight[OUTPUTS * PAIRS];  // two numbers each
  alignas(64) float sums[PANELS * OUTPUTS * PANEL];
};

// sums[P, 6, 16] += the products of `count` pairs.
template <int P>
INLINE void add_tile(const uint32_t *weight, const uint32_t *x, int64_t stride, int count,
                     float *sums) {
  __m512 acc[P][TILE];
#pragma GCC unroll 4
  for (int p = 0; p < P; ++p)
#pragma GCC unroll 6
    for (int i = 0; i < TILE; ++i) acc[p][i] = _mm512_load_ps(sums + (p * OUTPUTS + i) * PANEL);
  for (int k = 0; k < count; ++k, x += PANEL) {
    __m512bh rows[P];
#pragma GCC unroll 4
    for (int p = 0; p < P; ++p) rows[p] = (__m512bh)_mm512_loadu_si512(x + p * stride);
#pragma GCC unroll 6
    for (int i = 0; i < TILE; ++i) {
      const __m512bh w = (__m512bh)_mm512_set1_epi32((int)weight[i * PAIRS + k]);
#pragma GCC unroll 4
      for (int p = 0; p < P; ++p) acc[p][i] = _mm512_dpbf16_ps(acc[p][i], rows[p], w);
    }
  }
#pragma GCC unroll 4
  for (int p = 0; p < P; ++p)
#pragma GCC unroll 6
    for (int i = 0; i < TILE; ++i) _mm512_store_ps(sums + (p * OUTPUTS + i) * PANEL, acc[p][i]);
}

INLINE void add_tiles(int panels, const uint32_t *weight, const uint32_t *x, int64_t stride,
                      int count, float *sums) {
  switch (panels) {
    case 1: return add_tile<1>(weight, x, stride, count, sums);
    case 2: return add_tile<2>(weight, x, stride, count, sums);
    case 3: return add_tile<3>(weight, x, stride, count, sums);
    default: return add_tile<4>(weight, x, stride, count, sums);
  }
}

// 16 codes times a scale, as bfloat16.
INLINE void put(uint16_t *to, __m512i codes, float scale) {
  const __m512 wide = _mm512_mul_ps(_mm512_cvtepi32_ps(codes), _mm512_set1_ps(scale));
  _mm256_storeu_si256((__m256i *)to, (__m256i)_mm512_cvtneps_pbh(wide));
}

// `count` inputs of a row from the byte `first` on; 8 bits get their scale when all is added.
INLINE void widen_codes(const CodeJob &job, int64_t n, int64_t first, bool upper, int count,
                        uint32_t *to) {
  uint16_t *pairs = (uint16_t *)to;
  if (job.bits == 8) {
    const int8_t *codes = (const int8_t *)job.codes + n * job.inputs + first;
    for (int k = 0; k < count; k += PANEL) {
      const __mmask16 there = (__mmask16)((1u << std::min(count - k, PANEL)) - 1);
      put(pairs + k, _mm512_cvtepi8_epi32(_mm_maskz_loadu_epi8(there, codes + k)), 1.0f);
    }
    return;
  }
  const uint8_t *codes = (const uint8_t *)job.codes + n * job.inputs / 2 + first;
  const uint16_t *scales = (const uint16_t *)job.scale + n * job.inputs / GROUP;
  for (int k = 0; k < count; k += PANEL) {
    const int64_t column = first + k + (upper ? job.inputs / 2 : 0);
    const uint32_t bits = (uint32_t)scales[column / GROUP] << 16;
    float scale;
    std::memcpy(&scale, &bits, sizeof scale);
    const __m512i both = _mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)(codes + k)));
    const __m512i code =
        upper ? _mm512_srli_epi32(both, 4) : _mm512_and_si512(both, _mm512_set1_epi32(15));
    put(pairs + k, _mm512_sub_epi32(code, _mm512_set1_epi32(8)), scale);
  }
}

// Asks for the codes of the next part of 6 outputs, so that they are there when their turn comes.
INLINE void ask_for(const CodeJob &job, int64_t n, int64_t first) {
  const int64_t stride = job.inputs * job.bits / 8;
  const char *from = (const char *)job.codes + n * stride + first;
  for (int i = 0; i < TILE; ++i, from += stride)
    for (int k = 0; k < 2 * PAIRS; k += 64) __builtin_prefetch(from + k, 0, 2);
}

// Columns become rows: [16, 16].
INLINE void turn(__m512 *r) {
  __m512 t[16], u[16];
  for (int i = 0; i < 16; i += 2) {
    t[i] = _mm512_unpacklo_ps(r[i], r[i + 1]);
    t[i + 1] = _mm512_unpackhi_ps(r[i], r[i + 1]);
  }
  for (int i = 0; i < 16; i += 4)
    for (int j = 0; j < 2; ++j) {
      u[i + 2 * j] = _mm512_shuffle_ps(t[i + j], t[i + j + 2], 0x44);
      u[i + 2 * j + 1] = _mm512_shuffle_ps(t[i + j], t[i + j + 2], 0xee);
    }
  for (int j = 0; j < 4; ++j) {
    const __m512 a = _mm512_shuffle_f32x4(u[j], u[4 + j], 0x88);
    const __m512 b = _mm512_shuffle_f32x4(u[8 + j], u[12 + j], 0x88);
    const __m512 c = _mm512_shuffle_f32x4(u[j], u[4 + j], 0xdd);
    const __m512 d = _mm512_shuffle_f32x4(u[8 + j], u[12 + j], 0xdd);
    r[j] = _mm512_shuffle_f32x4(a, b, 0x88);
    r[4 + j] = _mm512_shuffle_f32x4(c, d, 0x88);
    r[8 + j] = _mm512_shuffle_f32x4(a, b, 0xdd);
    r[12 + j] = _mm512_shuffle_f32x4(c, d, 0xdd);
  }
}

// The sums of 16 outputs of a panel with their scales and biases, rounded, to the rows of `out`.
INLINE void finish(const CodeJob &job, const float *sums, int64_t first, int64_t row) {
  const int outputs = (int)std::min<int64_t>(16, job.outputs - first);
  const int rows = (int)std::min<int64_t>(PANEL, job.count - row);
  __m512 r[16];
  for (int i = 0; i < 16; ++i) {
    const int64_t n = first + std::min(i, outputs - 1);
    const float scale = job.bits == 8 ? ((const float *)job.scale)[n] : 1.0f;
    r[i] = _mm512_mul_ps(_mm512_load_ps(sums + i * PANEL), _mm512_set1_ps(scale));
    if (job.bias) r[i] = _mm512_add_ps(r[i], _mm512_set1_ps(job.bias[n]));
  }
  turn(r);
  const __mmask16 there = (__mmask16)((1u << outputs) - 1);
  for (int m = 0; m < rows; ++m)
    _mm256_mask_storeu_epi16(job.out + (row + m) * job.outputs + first, there,
                             (__m256i)_mm512_cvtneps_pbh(r[m]));
}

// A block of outputs for all rows of x.
void multiply_codes(const CodeJob &job, int64_t block) {
  static thread_local CodeScratch scratch;
  const int64_t first = block * OUTPUTS, stride = PANEL * job.inputs / 2;  // of a panel
  const int outputs = (int)std::min<int64_t>(OUTPUTS, job.outputs - first);
  const int halves = job.bits == 8 ? 1 : 2;  // 4 bits: the second half of a row is in upper bits
  const int64_t width = job.inputs / halves;
  for (int64_t row = 0; row < job.count; row += PANELS * PANEL) {
    const int panels = (int)(std::min<int64_t>(PANELS * PANEL, job.count - row) + PANEL - 1) / PANEL;
    std::memset(scratch.sums, 0, sizeof scratch.sums);
    for (int half = 0; half < halves; ++half)
      for (int64_t k = 0; k < width; k += 2 * PAIRS) {
        const int count = (int)std::min<int64_t>(2 * PAIRS, width - k);
        for (int n = 0; n < outputs; ++n)
          widen_codes(job, first + n, k, half, count, scratch.weight + n * PAIRS);
        const uint32_t *x = job.panels + row / PANEL * stride + (half * width + k) / 2 * PANEL;
        for (int p = 0; p < panels; p += WIDE)
          for (int n = 0; n < outputs; n += TILE) {
            if (p == 0) ask_for(job, first + n, k + 2 * PAIRS);
            add_tiles(std::min(WIDE, panels - p), scratch.weight + n * PAIRS, x + p * stride, stride,
                      count / 2, scratch.sums + (p * OUTPUTS + n) * PANEL);
          }
      }
    for (int p = 0; p < panels; ++p)
      for (int n = 0; n < outputs; n += 16)
        finish(job, scratch.sums + (p * OUTPUTS + n) * PANEL, first + n, row + p * PANEL);
  }
}
