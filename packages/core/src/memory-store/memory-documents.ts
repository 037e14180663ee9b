import type { Documents, FleetMember, SharedDocument } from '../model/documents.ts'

/** Documents of one process, which are lost when it ends. */
export function memoryDocuments(): Documents {
  const documents = new Map<string, SharedDocument>()
  const logs = new Map<string, readonly string[]>()
  const fleets = new Map<string, readonly (FleetMember & { readonly expiresMs: number })[]>()
  const live = (name: string) =>
    fleets.get(name)?.filter(({ expiresMs }) => expiresMs > Date.now()) ?? []

  return {
    revision: (name) => documents.get(name)?.revision ?? 0,
    read: (name) => documents.get(name),
    write(name, { revision, text, record, maxKept }) {
      if ((documents.get(name)?.revision ?? 0) !== revision) return false
      documents.set(name, { revision: revision + 1, text })
      logs.set(name, [record, ...(logs.get(name) ?? [])].slice(0, maxKept))
      return true
    },
    log: (name) => logs.get(name) ?? [],
    announce(name, member, ttlMs) {
      const others = live(name).filter(({ id }) => id !== member.id)
      fleets.set(name, [...others, { ...member, expiresMs: Date.now() + ttlMs }])
    },
    members: (name) => live(name).map(({ id, text }) => ({ id, text })),
  }
}
