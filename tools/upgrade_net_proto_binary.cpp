// Brings a net with weights of any age into today's form.
#include "caffe/io/binary_format.hpp"
#include "caffe/io/text_format.hpp"
#include "caffe/io/upgrade_net.hpp"
#include "tools/tool_main.hpp"

int main(int argc, char** argv) {
  return caffe::tools::RunTool(
      argc, argv,
      "Brings a net with weights of any age into today's form.\nUsage: "
      "upgrade_net_proto_binary INPUT OUTPUT",
      2, 2,
      [](const std::vector<std::string>& arguments) {
        const std::string &input = arguments[0], &output = arguments[1];
        caffe::NetParameter net;
        caffe::ReadBinaryProto(input, &net);
        caffe::AdoptBvlcFields(input, &net);
        if (!caffe::UpgradeNet(input, &net)) {
          LOG(WARNING) << "File already in latest proto format: " << input;
        }
        caffe::WriteBinaryProto(output, net);
        LOG(INFO) << "Wrote upgraded NetParameter binary proto to " << output;
      },
      /*failure=*/2);  // as in Caffe, where scripts tell it from wrong usage
}
