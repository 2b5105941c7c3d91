// Measures the cost of one Net::Forward, to compare with Python's: forward_call NET.prototxt
// [SECONDS] prints one JSON object. The net keeps all blobs, as in Python, and has a batch of 1.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "caffe/caffe.hpp"

int main(int argc, char** argv) {
  const double seconds = argc > 2 ? std::atof(argv[2]) : 1;
  if (argc < 2 || seconds <= 0) {
    std::fprintf(stderr, "usage: forward_call NET.prototxt [SECONDS]\n");
    return 1;
  }
  using Clock = std::chrono::steady_clock;
  try {
    caffe::Net net(argv[1], caffe::TEST);
    caffe::Blob& input = *net.input_blobs().at(0);
    input.Reshape(input.shape().With(0, 1));
    std::vector<double> times;
    const auto end = Clock::now() + std::chrono::duration<double>(seconds);
    while (Clock::now() < end) {
      const auto start = Clock::now();
      net.Forward();
      times.push_back(std::chrono::duration<double>(Clock::now() - start).count());
    }
    std::sort(times.begin(), times.end());
    std::printf("{\"calls\": %zu, \"median_us\": %.2f, \"best_us\": %.2f}\n", times.size(),
                times[times.size() / 2] * 1e6, times.front() * 1e6);
  } catch (const caffe::Error& error) {
    std::fprintf(stderr, "forward_call: %s\n", error.what());
    return 1;
  }
}
