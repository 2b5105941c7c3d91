// Measures the rate of this machine's matrix product: gemm_rate [SIZE] [SECONDS] prints one JSON
// object.
#include <omp.h>
#include <oneapi/dnnl/dnnl.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <vector>

int main(int argc, char** argv) {
  const dnnl_dim_t n = argc > 1 ? std::atoi(argv[1]) : 2048;
  const double seconds = argc > 2 ? std::atof(argv[2]) : 2;
  if (n < 1 || seconds <= 0) {
    std::fprintf(stderr, "usage: gemm_rate [SIZE] [SECONDS]\n");
    return 1;
  }
  std::vector<float> a(n * n, 0.5f), b(n * n, 0.25f), c(n * n);
  using Clock = std::chrono::steady_clock;
  const auto multiply = [&] {
    const auto start = Clock::now();
    if (dnnl_sgemm('N', 'N', n, n, n, 1, a.data(), n, b.data(), n, 0, c.data(), n) !=
        dnnl_success) {
      std::fprintf(stderr, "dnnl_sgemm failed\n");
      std::exit(1);
    }
    return std::chrono::duration<double>(Clock::now() - start).count();
  };

  multiply();  // warm-up: threads, code generation and first touch
  std::vector<double> times;
  for (double spent = 0; spent < seconds || times.size() < 5;) {
    times.push_back(multiply());
    spent += times.back();
  }
  std::sort(times.begin(), times.end());
  const double flop = 2.0 * n * n * n;
  std::printf(
      "{\"size\": %d, \"threads\": %d, \"runs\": %zu, \"gflops\": %.1f, \"gflops_best\": %.1f}\n",
      static_cast<int>(n), omp_get_max_threads(), times.size(),
      flop / times[times.size() / 2] / 1e9, flop / times.front() / 1e9);
}
