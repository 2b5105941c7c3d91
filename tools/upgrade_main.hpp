// Shared by the tools that upgrade a file to the current format.
#pragma once

#include <string>
#include <vector>

#include "tools/tool_main.hpp"

namespace caffe::tools {

// Calls read(INPUT, &message), upgrade(INPUT, &message), which returns whether anything changed,
// and write(OUTPUT, message). Messages use `what` for the file and `written` for the result. Exits
// with 2 if the input cannot be read and with 1 for other failures, as in Caffe; scripts rely on
// this.
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
