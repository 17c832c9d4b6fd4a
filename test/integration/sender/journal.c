/* SPDX-License-Identifier: BSD-2-Clause */
/* journal.c - the journal file: its size, and mapping it.  One thread. */
#include "test/integration/sender/journal.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "test/integration/sender/clock.h"

static size_t whole_size(uint32_t lane_count, uint32_t lane_capacity)
{
    return sizeof(struct journal_head) + lane_count * sizeof(struct lane) +
           (size_t)lane_count * lane_capacity * sizeof(struct entry);
}

static bool map(struct journal *j, int fd, size_t size_bytes, int protection)
{
    void *at = mmap(NULL, size_bytes, protection, MAP_SHARED, fd, 0);
    if (at == MAP_FAILED)
        return false;
    j->head = at;
    j->lanes = (struct lane *)(j->head + 1);
    j->size_bytes = size_bytes;
    return true;
}

static void find_entries(struct journal *j)
{
    j->entries = (struct entry *)(j->lanes + j->head->lane_count);
}

bool journal_create(struct journal *j, const char *path, uint32_t lane_count,
                    uint32_t lane_capacity)
{
    size_t size_bytes = whole_size(lane_count, lane_capacity);
    int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (fd < 0)
        return false;
    bool ok = ftruncate(fd, (off_t)size_bytes) == 0 &&
              map(j, fd, size_bytes, PROT_READ | PROT_WRITE);
    close(fd);
    if (!ok)
        return false;
    j->head->magic = JOURNAL_MAGIC;
    j->head->lane_count = lane_count;
    j->head->lane_capacity = lane_capacity;
    j->head->stamp_base_ms =
        wall_ms() - (int64_t)lane_count * (int64_t)lane_capacity;
    find_entries(j);
    return true;
}

bool journal_open(struct journal *j, const char *path)
{
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    bool ok = fstat(fd, &st) == 0 &&
              (size_t)st.st_size >= sizeof(struct journal_head) &&
              map(j, fd, (size_t)st.st_size, PROT_READ);
    close(fd);
    if (!ok)
        return false;
    if (j->head->magic != JOURNAL_MAGIC ||
        j->size_bytes !=
            whole_size(j->head->lane_count, j->head->lane_capacity)) {
        journal_close(j);
        return false;
    }
    find_entries(j);
    return true;
}

void journal_close(struct journal *j)
{
    munmap(j->head, j->size_bytes);
    j->head = NULL;
}
