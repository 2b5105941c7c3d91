// What the tools that bring a file into today's form share.
#pragma once

#include <string>
#include <vector>

#include "tools/tool_main.hpp"

namespace caffe::tools {

// read(INPUT, &message), upgrade(INPUT, &message), which says whether there was anything to do, and
// write(OUTPUT, message). `what` is the file and `written` the result, in messages. Exits with 2
// where the input cannot be read and 1 where the rest fails, as in Caffe; scripts tell them apart.
template <typename Message, typename Read, typename Upgrade, typename Write>
int RunUpgrade(int argc, char** argv, const std::string& tool, const std::string& what,
               const std::string& written, Read read, Upgrade upgrade, Write write) {
  return RunTool(
      argc, argv,
      "Brings a " + what + " of any age into today's form.\nUsage: " + tool + " INPUT OUTPUT", 2, 2,
      [&](const std::vector<std::string>& arguments) {
        const std::string &input = arguments[0], &output = arguments[1];
        Message message;
        try {
          read(input, &message);
        } catch (const std::exception& error) {
          throw ToolFailure(2, error.what());
        }
        if (!upgrade(input, &message)) {
          LOG(ERROR) << "File already in latest proto format: " << input;
        }
        write(output, message);
        LOG(INFO) << "Wrote upgraded " << written << " proto to " << output;
      });
}

}  // namespace caffe::tools
