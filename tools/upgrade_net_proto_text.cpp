// Upgrades a net definition from any older format to the current one.
#include "caffe/io/text_format.hpp"
#include "caffe/io/upgrade_net.hpp"
#include "tools/upgrade_main.hpp"

int main(int argc, char** argv) {
  return caffe::tools::RunUpgrade<caffe::NetParameter>(
      argc, argv, "upgrade_net_proto_text", "net definition", "NetParameter text",
      [](const std::string& input, auto* net) { caffe::ReadTextProto(input, net); },
      [](const std::string& input, auto* net) { return caffe::UpgradeNet(input, net); },
      [](const std::string& output, const auto& net) { caffe::WriteTextProto(output, net); });
}
