#include "tests/fuzz/dag/net_generator.hpp"

#include "tests/fuzz/dag/net_writer.hpp"

namespace caffe::fuzz {

NetParameter GenerateNet(uint64_t seed) {
  return NetWriter(seed).Write();
}

}  // namespace caffe::fuzz
