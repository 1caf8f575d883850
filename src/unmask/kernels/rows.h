// One row of logits, read once: included by reduce.cpp once per instruction set.
//
// LANES floats make a vector. The loop that looks for the maxima of a block of both rows brings it
// into the cache; the loop that computes the exponentials reads it from there. Sums are floats
// inside a block and doubles between blocks, scaled down whenever a larger logit appears.

typedef float Floats __attribute__((vector_size(4 * LANES)));
typedef int32_t Ints __attribute__((vector_size(4 * LANES)));
typedef uint32_t Words __attribute__((vector_size(4 * LANES)));
typedef uint16_t Halves __attribute__((vector_size(2 * LANES)));

template <class To, class From>
INLINE To bits_of(const From &from) {
  static_assert(sizeof(To) == sizeof(From), "another width");
  To to;
  std::memcpy(&to, &from, sizeof to);
  return to;
}

INLINE Floats load(const float *from) {
  Floats v;
  std::memcpy(&v, from, sizeof v);
  return v;
}

INLINE void store(float *to, Floats v) { std::memcpy(to, &v, sizeof v); }

INLINE Floats all(float x) { return Floats{} + x; }

INLINE Floats larger(Floats a, Floats b) { return a > b ? a : b; }  // b where a is NaN

INLINE Floats smaller(Floats a, Floats b) { return a < b ? a : b; }

// exp(x) for x <= 0, to 1e-7: 0 below the smallest float, NaN for NaN, exp(0) exactly 1.
// Between LEAST_EXPONENT and FLAT it is exp(FLAT), more than 0 and never a denormal.
INLINE Floats exp_of(Floats x) {
  const Floats y = x < FLAT ? all(FLAT) : x;
  const Floats shifted = y * 1.44269504f + ROUNDER;  // round(y / log 2) in the low bits
  const Floats n = shifted - ROUNDER;
  Floats r = y - n * 0.693115234375f;
  r = r - n * 3.19461849e-05f;
  Floats tail = r * 0.00138145988f + 0.00836871658f;
  tail = tail * r + 0.0416683890f;
  tail = tail * r + 0.166665211f;
  tail = tail * r + 0.499999940f;
  const Floats power = bits_of<Floats>(bits_of<Words>(shifted) << 23);
  const Floats e = (tail * (r * r) + r + 1.0f) * power;
  return x < LEAST_EXPONENT ? all(0.0f) : e;
}

INLINE Floats widen(const float *from) { return load(from); }

INLINE Floats widen(const Brain *from) {
#if LANES == 8  // one instruction; GCC makes three of the lines below
  return bits_of<Floats>(
      _mm256_slli_epi32(_mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)from)), 16));
#else
  Halves h;
  std::memcpy(&h, from, sizeof h);
  return bits_of<Floats>(__builtin_convertvector(h, Words) << 16);
#endif
}

INLINE Floats widen(const Half *from) {
  Halves h;
  std::memcpy(&h, from, sizeof h);
  const Words w = __builtin_convertvector(h, Words);
  const Words size = w & 0x7fffu;
  const Floats scaled = bits_of<Floats>(size << 13) * 0x1p112f;
  const Words finite = bits_of<Words>(scaled);
  const Words special = (size << 13) | 0x7f800000u;  // infinity and NaN
  const Words chosen = size >= 0x7c00u ? special : finite;
  return bits_of<Floats>(chosen | ((w & 0x8000u) << 16));
}

// The floats of a block: in the row itself, or copied to the buffer and padded with -inf.
template <class T>
INLINE const float *floats_of(const T *from, int count, float *buffer) {
  int i = 0;
  for (; i + LANES <= count; i += LANES) store(buffer + i, widen(from + i));
  if (i < count) {
    T last[LANES] = {};
    std::memcpy(last, from + i, sizeof(T) * (count - i));
    store(buffer + i, widen(last));
    for (int j = count; j < i + LANES; ++j) buffer[j] = -INFINITY;
  }
  return buffer;
}

INLINE const float *block_of(const float *from, int count, float *buffer) {
  return count % LANES ? floats_of(from, count, buffer) : from;
}

INLINE const float *block_of(const Brain *from, int count, float *buffer) {
  return floats_of(from, count, buffer);
}

INLINE const float *block_of(const Half *from, int count, float *buffer) {
  return floats_of(from, count, buffer);
}

INLINE float largest_of(Floats v) {
  float best = v[0];
  for (int i = 1; i < LANES; ++i) best = v[i] > best ? v[i] : best;
  return best;
}

// A sum of floats inside a block, of doubles between blocks: lane by lane.
struct Sum {
  double lane[LANES];

  INLINE Sum() {
    for (int i = 0; i < LANES; ++i) lane[i] = 0.0;
  }
  INLINE void add(Floats v) {
    for (int i = 0; i < LANES; ++i) lane[i] += v[i];
  }
  // every term w * x becomes factor * w * (x + shift), where `weights` is the sum of the w
  INLINE void scale(double factor, double shift, const Sum &weights) {
    for (int i = 0; i < LANES; ++i) lane[i] = factor * (lane[i] + shift * weights.lane[i]);
  }
  INLINE double total() const {
    double sum = 0;
    for (int i = 0; i < LANES; ++i) sum += lane[i];
    return sum;
  }
};

// A softmax during reading: weights exp(z - top), and the largest logits of each lane.
struct Softmax {
  Floats first, second;
  float top = -INFINITY;
  double moved = 0.0, shrink = 1.0;  // -(rise of the top in this block), and its exp
  Sum weight;

  INLINE Softmax() : first(all(-INFINITY)), second(all(-INFINITY)) {}

  // the origin of the exponents; any number while all logits are -inf
  INLINE float base() const { return top == -INFINITY ? 0.0f : top; }

  INLINE void see(Floats z) {
    second = larger(second, smaller(z, first));
    first = larger(z, first);
  }
  // call after each block; true if the block holds a new top
  INLINE bool rise() {
    const float before = top;
    top = largest_of(first);
    moved = before == -INFINITY ? 0.0 : (double)before - top;
    shrink = top == before ? 1.0 : before == -INFINITY ? 0.0 : std::exp(moved);
    return top != before;
  }
  INLINE double total() const { return top == -INFINITY ? NAN : weight.total(); }

  INLINE float runner_up() const {
    float best = -INFINITY;
    bool passed = false;  // skips the top itself, once
    for (int i = 0; i < LANES; ++i) {
      if (first[i] == top && !passed) passed = true;
      else if (first[i] > best) best = first[i];
      if (second[i] > best) best = second[i];
    }
    return best;
  }
};

INLINE int place_of(float wanted, const float *z, int count) {
  int i = 0;
  while (i < count && z[i] != wanted) ++i;
  return i;
}

INLINE double not_negative(double x) { return x < 0 ? 0.0 : x; }

// KL(first || second); `allowed` is the largest logit of the first that the second forbids.
INLINE double divergence(double gaps, double first, double second, float allowed, float top) {
  if (std::isnan(first + second)) return NAN;
  if (allowed - top >= LEAST_EXPONENT) return INFINITY;
  return not_negative(gaps / first + std::log(second) - std::log(first));
}

// A row now and, if COMPARED, one forward ago; z and y are a block of each, padded with -inf.
template <bool COMPARED>
struct Reading {
  Softmax now, past;
  Sum depth, past_gap, now_gap;  // of weights times z - top, and times y - z, both from their tops
  float now_forbids = -INFINITY, past_forbids = -INFINITY;
  int64_t token = 0;

  INLINE Reading() {}

  INLINE void see(const float *z, const float *y, int padded, int64_t start) {
    for (int i = 0; i < padded; i += LANES) now.see(load(z + i));
    if (COMPARED)
      for (int i = 0; i < padded; i += LANES) past.first = larger(load(y + i), past.first);
    const bool rose = now.rise(), past_rose = COMPARED && past.rise();
    if (rose) token = start + place_of(now.top, z, padded);
    if (rose || past_rose) rescale();
  }

  INLINE void rescale() {
    depth.scale(now.shrink, now.moved, now.weight);
    if (COMPARED) {
      past_gap.scale(past.shrink, past.moved - now.moved, past.weight);
      now_gap.scale(now.shrink, past.moved - now.moved, now.weight);
      past.weight.scale(past.shrink, 0.0, past.weight);
    }
    now.weight.scale(now.shrink, 0.0, now.weight);
  }

  // Prefetches the next block while this one is weighed; an address past the end is harmless.
  template <class T>
  INLINE void weigh(const float *z, const float *y, int padded, const T *next, const T *past_next) {
    const Floats base = all(now.base()), past_base = all(past.base());
    Floats weights{}, depths{}, past_weights{}, past_gaps{}, now_gaps{};
    Ints odd{};
    for (int i = 0; i < padded; i += LANES) {
      __builtin_prefetch(next + i);
      const Floats d = load(z + i) - base;
      const Floats w = exp_of(d);
      weights += w;
      depths += w * (d < FLAT ? all(FLAT) : d);
      if (COMPARED) {
        __builtin_prefetch(past_next + i);
        const Floats c = load(y + i) - past_base;
        const Floats e = exp_of(c);
        const Floats gap = c - d;
        const Ints finite = (bits_of<Words>(gap) & 0x7f800000u) != 0x7f800000u;
        const Floats g = finite ? gap : all(0.0f);
        odd |= ~finite;
        past_weights += e;
        past_gaps += e * g;
        now_gaps += w * g;
      }
    }
    now.weight.add(weights);
    depth.add(depths);
    if (!COMPARED) return;
    past.weight.add(past_weights);
    past_gap.add(past_gaps);
    now_gap.add(now_gaps);
    int32_t any = 0;
    for (int i = 0; i < LANES; ++i) any |= odd[i];
    if (any) find_forbidden(z, y, padded);
  }

  // Keeps only their logits: a top that rises later may still make their weight 0.
  INLINE void find_forbidden(const float *z, const float *y, int padded) {
    Floats by_now = all(now_forbids), by_past = all(past_forbids);
    for (int i = 0; i < padded; i += LANES) {
      const Floats u = load(z + i), v = load(y + i);
      by_now = larger(u - now.base() == -INFINITY ? v : all(-INFINITY), by_now);
      by_past = larger(v - past.base() == -INFINITY ? u : all(-INFINITY), by_past);
    }
    now_forbids = largest_of(by_now);
    past_forbids = largest_of(by_past);
  }

  INLINE void finish(float scored, Row &out) const {
    const double total = now.total();
    out.confidence = std::exp((double)scored - now.top) / total;
    out.margin = -std::expm1((double)now.runner_up() - now.top) / total;
    out.entropy = not_negative(std::log(total) - depth.total() / total);
    if (!COMPARED) return;
    const double then = past.total();
    out.kl_prev_cur = divergence(past_gap.total(), then, total, now_forbids, past.top);
    out.kl_cur_prev = divergence(-now_gap.total(), total, then, past_forbids, now.top);
  }
};

// The uniform distribution over the tokens that are not suppressed.
INLINE const float *uniform_like(const float *z, int padded, float *buffer) {
  for (int i = 0; i < padded; i += LANES) {
    const Floats v = load(z + i);
    store(buffer + i, v == -INFINITY ? v : all(0.0f));
  }
  return buffer;
}

template <class T>
INLINE float logit(T z) {
  T lanes[LANES] = {z};
  return widen(lanes)[0];
}

// Without a row of the past, COMPARED compares with the uniform distribution.
template <bool COMPARED, class T>
INLINE void reduce_row(const T *row, const T *past_row, int64_t vocabulary, Row &out) {
  alignas(64) float buffer[BLOCK], past_buffer[BLOCK];
  Reading<COMPARED> reading;
  for (int64_t start = 0; start < vocabulary; start += BLOCK) {
    const int count = (int)std::min<int64_t>(BLOCK, vocabulary - start);
    const int padded = (count + LANES - 1) / LANES * LANES;
    const float *z = block_of(row + start, count, buffer), *y = nullptr;
    const T *next = row + start + BLOCK, *past_next = next;
    if (COMPARED && past_row) {
      y = block_of(past_row + start, count, past_buffer);
      past_next = past_row + start + BLOCK;
    } else if (COMPARED) {
      y = uniform_like(z, padded, past_buffer);
    }
    reading.see(z, y, padded, start);
    reading.weigh(z, y, padded, next, past_next);
  }
  if (out.token < 0) out.token = reading.token;
  reading.finish(logit(row[out.token]), out);
}

template <class T>
static void reduce_as(const Job &job, int64_t n) {
  const int64_t slot = job.slot ? job.slot[n] : NO_HISTORY;
  const T *row = static_cast<const T *>(job.now) + n * job.now_stride;
  const T *past = static_cast<const T *>(job.past);
  Row out;
  out.token = job.tokens ? job.tokens[n] : -1;
  if (slot < 0 && slot != UNIFORM)
    reduce_row<false, T>(row, nullptr, job.vocabulary, out);
  else
    reduce_row<true, T>(row, slot == UNIFORM ? nullptr : past + slot * job.past_stride,
                        job.vocabulary, out);
  job.write(n, out);
}

static void reduce(const Job &job, int64_t n) {
  switch (job.dtype) {
    case FLOAT32: return reduce_as<float>(job, n);
    case BFLOAT16: return reduce_as<Brain>(job, n);
    case FLOAT16: return reduce_as<Half>(job, n);
  }
}

// The masses of classes: sums of exp(z - top) over their tokens, and how deep the lowest logit is.
// Four sums for each class: neighbours of one class do not wait for one another.
template <class T>
static void sum_classes_as(const ClassJob &job, int64_t n) {
  alignas(64) float buffer[BLOCK], weights[BLOCK];
  const T *row = static_cast<const T *>(job.logits) + n * job.stride;
  Floats first = all(-INFINITY), last = all(INFINITY);
  for (int64_t start = 0; start < job.vocabulary; start += BLOCK) {
    const int count = (int)std::min<int64_t>(BLOCK, job.vocabulary - start);
    const float *z = block_of(row + start, count, buffer);
    for (int i = 0; i < count; i += LANES) {
      const Floats v = load(z + i);
      first = larger(v, first);
      last = smaller(v == -INFINITY ? all(INFINITY) : v, last);
    }
  }
  const float top = largest_of(first), bottom = -largest_of(-last);
  job.depth[n] = top == -INFINITY ? 0.0 : (double)bottom - top;
  std::vector<double> sums(4 * job.classes, 0.0);
  const Floats base = all(top == -INFINITY ? 0.0f : top);
  for (int64_t start = 0; start < job.vocabulary; start += BLOCK) {
    const int count = (int)std::min<int64_t>(BLOCK, job.vocabulary - start);
    const float *z = block_of(row + start, count, buffer);
    for (int i = 0; i < count; i += LANES) store(weights + i, exp_of(load(z + i) - base));
    const int32_t *kinds = job.kinds + start;
    int i = 0;
    for (; i + 4 <= count; i += 4)
      for (int j = 0; j < 4; ++j) sums[4 * kinds[i + j] + j] += weights[i + j];
    for (; i < count; ++i) sums[4 * kinds[i]] += weights[i];
  }
  double *out = job.sums + n * job.classes;
  for (int64_t c = 0; c < job.classes; ++c)
    out[c] = (sums[4 * c] + sums[4 * c + 1]) + (sums[4 * c + 2] + sums[4 * c + 3]);
}

static void sum_classes(const ClassJob &job, int64_t n) {
  switch (job.dtype) {
    case FLOAT32: return sum_classes_as<float>(job, n);
    case BFLOAT16: return sum_classes_as<Brain>(job, n);
    case FLOAT16: return sum_classes_as<Half>(job, n);
  }
}
