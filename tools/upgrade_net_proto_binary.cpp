// Upgrades a net with weights from any older format to the current one.
#include "caffe/io/binary_format.hpp"
#include "caffe/io/fork_fields.hpp"
#include "caffe/io/upgrade_net.hpp"
#include "tools/upgrade_main.hpp"

int main(int argc, char** argv) {
  return caffe::tools::RunUpgrade<caffe::NetParameter>(
      argc, argv, "upgrade_net_proto_binary", "net with weights", "NetParameter binary",
      [](const std::string& input, auto* net) {
        caffe::ReadBinaryProto(input, net);
        caffe::AdoptForkFields(input, net);
        caffe::AdoptBvlcFields(input, net);
      },
      [](const std::string& input, auto* net) { return caffe::UpgradeNet(input, net); },
      [](const std::string& output, const auto& net) { caffe::WriteBinaryProto(output, net); });
}
