// gemm_rate: this machine's rate of float matrix products in GFLOP/s, the limit that training
// times are compared with. Prints one number: the median of five products of 2048 x 2048.
#include <omp.h>
#include <oneapi/dnnl/dnnl.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <vector>

int main() {
  constexpr int kSize = 2048, kRuns = 5;
  std::vector<float> a(kSize * kSize, 1.0f), b(kSize * kSize, 0.5f), c(kSize * kSize);
  std::vector<double> rates;
  for (int run = 0; run <= kRuns; ++run) {
    const auto start = std::chrono::steady_clock::now();
    dnnl_sgemm('N', 'N', kSize, kSize, kSize, 1.0f, a.data(), kSize, b.data(), kSize, 0.0f, c.data(), kSize);
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    if (run > 0) rates.push_back(2.0 * kSize * kSize * kSize / seconds / 1e9);  // the first warms up
  }
  std::sort(rates.begin(), rates.end());
  std::printf("%.1f\n", rates[kRuns / 2]);
  return 0;
}
