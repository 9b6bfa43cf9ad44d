// If this failed, the manual would lack what --help has, or show something else.
#include "tool/man_page.hpp"

#include <CLI/CLI.hpp>

#include "testing.hpp"
#include "tool/program.hpp"

namespace leat::tool {
namespace {

TEST(ManPage, HasEveryCommandAndOptionThatIsShown) {
  CLI::App app{"What it is", "leat bench"};
  add_common_options(app);
  app.footer("Example:\n  leat bench log");
  std::string text;
  CLI::App* group = app.add_subcommand("group", "Of groups");
  CLI::App* info = group->add_subcommand("info", "Shows 'one'");
  info->add_option("TOPIC", text, "The topic")->required();
  info->add_option("-f,--format", text, "%s\\n for lines")->type_name("FMT")->default_str("%s\\n");
  info->add_option("--hidden", text)->group("");
  info->footer("Example:\n  leat group info t --format '%k\\n'\n.not a macro");
  app.add_subcommand("secret", "Not shown")->group("");

  const std::string page = man_page(app);
  for (const char* part :
       {".TH LEAT-BENCH 1 ", ".SH NAME\nleat\\-bench \\- What it is\n",
        ".SS leat bench group info TOPIC [OPTIONS]\nShows \\(aqone\\(aq\n",
        ".TP\n\\fBTOPIC\\fR\nThe topic\n",
        ".TP\n\\fB\\-f, \\-\\-format\\fR \\fIFMT\\fR [%s\\en]\n%s\\en for lines\n",
        "Example:\n.RS 4\n.EX\nleat group info t \\-\\-format \\(aq%k\\en\\(aq\n.EE\n.RE\n.PP\n"
        "\\&.not a macro\n",
        "\\-\\-dir\\fR \\fIDIRECTORY\\fR", ".EX\nleat bench log\n.EE"})
    EXPECT_NE(page.find(part), std::string::npos) << part << "\nis not in\n" << page;
  for (const char* part : {"hidden", "secret"})
    EXPECT_EQ(page.find(part), std::string::npos) << part;
  EXPECT_EQ(executable_name(app), "leat-bench");
}

TEST(ManPage, HasWhatTheExecutableAddsToIt) {
  CLI::App app{"What it is", "leat bench"};
  add_common_options(app);
  const std::string page =
      man_page(app, {.variables = {{"LEAT_X", "It's read."}}, .files = {{"~/.x", "A file."}}});
  for (const char* part :
       {".SH OPTIONS\n.TP\n", ".SH EXIT STATUS\n.TP\n\\fB0\\fR\nDone.\n", ".TP\n\\fBLEAT_DIR\\fR\n",
        ".TP\n\\fBLEAT_X\\fR\nIt\\(aqs read.\n.SH FILES\n", ".TP\n\\fB\\(ti/.x\\fR\nA file.\n"})
    EXPECT_NE(page.find(part), std::string::npos) << part << "\nis not in\n" << page;
  EXPECT_EQ(page.find(".SH COMMANDS"), std::string::npos);
}

}  // namespace
}  // namespace leat::tool
