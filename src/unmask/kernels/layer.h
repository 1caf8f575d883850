// Norms and rotations of a transformer layer, each in one pass: included by reduce.cpp for AVX2.
//
// Every number is computed as torch computes it, in the same order and rounded at the same places,
// so the bits are the same. A product is never fused with the sum that follows.

constexpr int ROW_WAYS = 4, LEVELS = 4;  // torch's cascade of sums: vectors side by side, and levels

INLINE Floats times(Floats a, Floats b) {
  Floats product = a * b;
  asm("" : "+x"(product));  // keeps the compiler from fusing it
  return product;
}

INLINE Floats plus(Floats a, Floats b) {
  Floats sum = a + b;
  asm("" : "+x"(sum));
  return sum;
}

// The nearest bfloat16, ties to even, in the upper half of each word; NaN stays NaN.
INLINE Words nearest_brain(Floats v) {
  const Words w = bits_of<Words>(v);
  return v == v ? w + 0x7fffu + ((w >> 16) & 1u) : Words{} + 0x7fc00000u;
}

INLINE void narrow(float *to, Floats v) { store(to, v); }

INLINE void narrow(Brain *to, Floats v) {
  const __m256i w = bits_of<__m256i>(nearest_brain(v) >> 16);
  const __m256i packed = _mm256_permute4x64_epi64(_mm256_packus_epi32(w, w), 0x08);
  _mm_storeu_si128((__m128i *)to, _mm256_castsi256_si128(packed));
}

INLINE Floats rounded(const float *, Floats v) { return v; }

INLINE Floats rounded(const Brain *, Floats v) {
  return bits_of<Floats>(nearest_brain(v) & 0xffff0000u);
}

INLINE int ceil_log2(int64_t x) {
  int power = 0;
  while ((int64_t{1} << power) < x) ++power;
  return power;
}

template <class T>
INLINE Floats square_of(const T *from) {
  const Floats v = widen(from);
  return times(v, v);
}

// The sum of squares of a row, in the order of torch's sum; `size` is a multiple of LANES.
template <class T>
INLINE float sum_of_squares(const T *x, int64_t size) {
  const int64_t vectors = size / LANES, steps = vectors / ROW_WAYS;
  const int power = std::max(4, ceil_log2(steps) / LEVELS);
  const int64_t step = int64_t{1} << power;
  Floats sums[LEVELS][ROW_WAYS] = {};
  int64_t i = 0;
  auto add = [&](int64_t count) {
    Floats now[ROW_WAYS];
#pragma GCC unroll 4
    for (int k = 0; k < ROW_WAYS; ++k) now[k] = sums[0][k];
    for (const int64_t end = i + count; i < end; ++i) {
      const T *from = x + i * ROW_WAYS * LANES;
#pragma GCC unroll 4
      for (int k = 0; k < ROW_WAYS; ++k) now[k] = plus(now[k], square_of(from + k * LANES));
    }
#pragma GCC unroll 4
    for (int k = 0; k < ROW_WAYS; ++k) sums[0][k] = now[k];
  };
  while (i + step <= steps) {
    add(step);
    for (int j = 1; j < LEVELS; ++j) {
      for (int k = 0; k < ROW_WAYS; ++k) {
        sums[j][k] = plus(sums[j][k], sums[j - 1][k]);
        sums[j - 1][k] = Floats{};
      }
      if (i & ((step - 1) << (j * power))) break;
    }
  }
  add(steps - i);
  for (int j = 1; j < LEVELS; ++j)
    for (int k = 0; k < ROW_WAYS; ++k) sums[0][k] = plus(sums[0][k], sums[j][k]);
  for (int64_t v = steps * ROW_WAYS; v < vectors; ++v)
    sums[0][0] = plus(sums[0][0], square_of(x + v * LANES));
  for (int k = 1; k < ROW_WAYS; ++k) sums[0][0] = plus(sums[0][0], sums[0][k]);
  float total = 0.0f;
  for (int lane = 0; lane < LANES; ++lane) total += sums[0][0][lane];
  return total;
}

template <class T>
INLINE void normalise_as(const NormJob &job, int64_t row) {
  const T *x = (const T *)job.x + row * job.size, *weight = (const T *)job.weight;
  T *out = (T *)job.out + row * job.size;
  const float mean = sum_of_squares(x, job.size) / (float)job.size;
  const Floats scale = all(1.0f / std::sqrt(mean + job.eps));
  for (int64_t i = 0; i < job.size; i += LANES)
    narrow(out + i, times(widen(weight + i), rounded(x, times(widen(x + i), scale))));
}

void normalise(const NormJob &job, int64_t row) {
  if (job.dtype == BFLOAT16) return normalise_as<Brain>(job, row);
  return normalise_as<float>(job, row);
}

// x * cos + (x rolled by half) * sin for all heads of a position, each step rounded to `Table`.
template <class T, class Table>
INLINE void rotate_as(const RotateJob &job, int64_t row) {
  const int64_t half = job.turned / 2, place = row % job.places;
  const Table *cos = (const Table *)job.cos + place * job.turned;
  const Table *sin = (const Table *)job.sin + place * job.turned;
  for (int64_t head = 0; head < job.heads; ++head) {
    const T *x = (const T *)job.x + (row * job.heads + head) * job.size;
    T *out = (T *)job.out + (row * job.heads + head) * job.size;
    for (int64_t i = 0; i < job.turned; i += LANES) {
      const T *other = x + (i < half ? i + half : i - half);
      const Floats one = rounded(cos, times(widen(x + i), widen(cos + i)));
      const Floats two = rounded(cos, times(widen(other), widen(sin + i)));
      narrow(out + i, rounded(cos, plus(one, two)));
    }
    std::memcpy(out + job.turned, x + job.turned, (job.size - job.turned) * sizeof(T));
  }
}

void rotate(const RotateJob &job, int64_t row) {
  if (job.dtype == FLOAT32) return rotate_as<float, float>(job, row);
  if (job.table == FLOAT32) return rotate_as<Brain, float>(job, row);
  return rotate_as<Brain, Brain>(job, row);
}
