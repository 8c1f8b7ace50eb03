// SPDX-License-Identifier: MIT
/*
 * A lookup in the link maps that takes no lock; see the header for why. It reads what any ELF
 * system with the System V dynamic section has: DT_GNU_HASH or DT_HASH, DT_SYMTAB, DT_STRTAB and,
 * for the choice among versions of a name, DT_VERSYM: the one that is not hidden is the default,
 * which a program linked today would get.
 */
#include "preload/symbols.h"

#include <elf.h>
#include <link.h>
#include <stdint.h>

#ifndef STT_GNU_IFUNC
#define STT_GNU_IFUNC 10
#endif

#define VERSYM_HIDDEN 0x8000u

void *next_table[NEXT_COUNT];

static const char *const next_names[NEXT_COUNT] = {
#define X(name) [NEXT_##name] = #name,
	NEXT_FUNCTIONS(X)
#undef X
};

extern ElfW(Dyn) _DYNAMIC[] __attribute__((visibility("hidden")));

/* The loader's list for debuggers: glibc exports the structure, musl a pointer to it. */
extern struct r_debug _r_debug __attribute__((weak));
extern struct r_debug *_dl_debug_addr __attribute__((weak));

struct image {
	const ElfW(Sym) * symbols;
	const char *strings;
	const ElfW(Half) * versions;
	const uint32_t *gnu_hash;
	const uint32_t *hash;
	ElfW(Addr) load;
};

static const struct r_debug *loader_debug(void)
{
	if (&_r_debug && _r_debug.r_map)
		return &_r_debug;
	return &_dl_debug_addr ? _dl_debug_addr : NULL;
}

/* glibc relocates the addresses in its copy of the dynamic section, musl and the vDSO do not. */
static const void *dynamic_address(const struct link_map *map, ElfW(Addr) value)
{
	if (value < map->l_addr)
		value += map->l_addr;
	return (const void *)value;
}

static bool read_image(const struct link_map *map, struct image *ret)
{
	*ret = (struct image){.load = map->l_addr};
	if (!map->l_ld)
		return false;
	for (const ElfW(Dyn) *d = map->l_ld; d->d_tag != DT_NULL; d++) {
		const void *address = dynamic_address(map, d->d_un.d_ptr);

		if (d->d_tag == DT_SYMTAB)
			ret->symbols = address;
		else if (d->d_tag == DT_STRTAB)
			ret->strings = address;
		else if (d->d_tag == DT_VERSYM)
			ret->versions = address;
		else if (d->d_tag == DT_GNU_HASH)
			ret->gnu_hash = address;
		else if (d->d_tag == DT_HASH)
			ret->hash = address;
	}
	return ret->symbols && ret->strings;
}

static bool is_default_function(const struct image *image, uint32_t ix, const char *name)
{
	const ElfW(Sym) *s = &image->symbols[ix];
	unsigned type = ELF64_ST_TYPE(s->st_info);

	if (s->st_shndx == SHN_UNDEF || !s->st_value)
		return false;
	if (type != STT_FUNC && type != STT_GNU_IFUNC && type != STT_NOTYPE)
		return false;
	if (image->versions && (image->versions[ix] & VERSYM_HIDDEN))
		return false;
	return symbol_is(image->strings + s->st_name, name);
}

static uint32_t gnu_hash_of(const char *name)
{
	uint32_t h = 5381;

	for (; *name; name++)
		h = h * 33 + (unsigned char)*name;
	return h;
}

static uint32_t sysv_hash_of(const char *name)
{
	uint32_t h = 0;

	for (; *name; name++) {
		h = (h << 4) + (unsigned char)*name;
		h ^= (h >> 24) & 0xf0;
		h &= 0x0fffffff;
	}
	return h;
}

static uint32_t find_in_gnu_hash(const struct image *image, const char *name)
{
	const uint32_t *table = image->gnu_hash;
	uint32_t bucket_count = table[0], first = table[1], bloom_count = table[2];
	const uint32_t *buckets = table + 4 + bloom_count * (sizeof(ElfW(Addr)) / 4);
	const uint32_t *chain = buckets + bucket_count;
	uint32_t hash = gnu_hash_of(name);
	uint32_t ix;

	if (!bucket_count)
		return 0;
	ix = buckets[hash % bucket_count];
	if (ix < first)
		return 0;
	for (;; ix++) {
		uint32_t entry = chain[ix - first];

		if ((entry | 1) == (hash | 1) && is_default_function(image, ix, name))
			return ix;
		if (entry & 1)
			return 0;
	}
}

static uint32_t find_in_sysv_hash(const struct image *image, const char *name)
{
	const uint32_t *table = image->hash;
	uint32_t bucket_count = table[0];
	const uint32_t *buckets = table + 2, *chain = buckets + bucket_count;

	if (!bucket_count)
		return 0;
	for (uint32_t ix = buckets[sysv_hash_of(name) % bucket_count]; ix; ix = chain[ix])
		if (is_default_function(image, ix, name))
			return ix;
	return 0;
}

static void *find_in_map(const struct link_map *map, const char *name)
{
	struct image image;
	uint32_t ix = 0;
	void *address;

	if (!read_image(map, &image))
		return NULL;
	if (image.gnu_hash)
		ix = find_in_gnu_hash(&image, name);
	else if (image.hash)
		ix = find_in_sysv_hash(&image, name);
	if (!ix)
		return NULL;
	address = (void *)(image.load + image.symbols[ix].st_value);
	if (ELF64_ST_TYPE(image.symbols[ix].st_info) == STT_GNU_IFUNC)
		address = ((void *(*)(void))address)();
	return address;
}

static const struct link_map *own_map(void)
{
	const struct r_debug *debug = loader_debug();
	const struct link_map *map = debug ? debug->r_map : NULL;

	while (map && map->l_ld != _DYNAMIC)
		map = map->l_next;
	return map;
}

static void *find_behind(const struct link_map *map, const char *name)
{
	void *function = NULL;

	for (map = map ? map->l_next : NULL; map && !function; map = map->l_next)
		function = find_in_map(map, name);
	return function;
}

void *symbol_in_front(const char *name, void *found)
{
	const struct link_map *own = own_map();
	void *function = own && found ? find_in_map(own, name) : NULL;

	return function && find_behind(own, name) == found ? function : found;
}

void *next_resolve(enum next_index ix)
{
	void *function = find_behind(own_map(), next_names[ix]);

	if (function)
		__atomic_store_n(&next_table[ix], function, __ATOMIC_RELAXED);
	return function;
}

const char *symbol_loader_path(void)
{
	const struct r_debug *debug = loader_debug();
	const struct link_map *map = debug ? debug->r_map : NULL;

	while (map && map->l_addr != debug->r_ldbase)
		map = map->l_next;
	return map && map->l_name && *map->l_name ? map->l_name : NULL;
}

const char *symbol_own_path(void)
{
	const struct link_map *map = own_map();

	return map && map->l_name && *map->l_name ? map->l_name : NULL;
}
