/* Runs a target once on each file of a folder, without a fuzzer: what was found once stays found.
 */
#include "side.h"

#include <dirent.h>

int main(int argc, char **argv) {
  static uint8_t data[1 << 20];
  int count = 0;
  DIR *folder = argc == 2 ? opendir(argv[1]) : NULL;
  REQUIRE(folder);
  for (const struct dirent *entry; (entry = readdir(folder));) {
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", argv[1], entry->d_name);
    FILE *file = entry->d_name[0] == '.' ? NULL : fopen(path, "rb");
    if (!file) continue;
    const size_t size = fread(data, 1, sizeof data, file);
    fclose(file);
    LLVMFuzzerTestOneInput(data, size);
    count++;
  }
  closedir(folder);
  printf("%d inputs\n", count);
  return count == 0;
}
