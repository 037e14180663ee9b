import type { Documents, FleetMember, SharedDocument } from '../model/documents.ts'

interface Kept {
  document: SharedDocument | undefined
  log: readonly string[]
  readonly members: Map<string, FleetMember & { readonly expiresMs: number }>
}

/** Documents of one process, which are lost when it ends. */
export function memoryDocuments(): Documents {
  const kept = new Map<string, Kept>()

  function of(name: string): Kept {
    const known = kept.get(name) ?? { document: undefined, log: [], members: new Map() }
    kept.set(name, known)
    return known
  }

  return {
    revision: (name) => kept.get(name)?.document?.revision ?? 0,
    read: (name) => kept.get(name)?.document,
    write(name, { revision, text, record, maxKept }) {
      const known = of(name)
      if ((known.document?.revision ?? 0) !== revision) return false
      known.document = { revision: revision + 1, text }
      known.log = [record, ...known.log].slice(0, maxKept)
      return true
    },
    log: (name) => kept.get(name)?.log ?? [],
    announce(name, member, ttlMs) {
      of(name).members.set(member.id, { ...member, expiresMs: Date.now() + ttlMs })
    },
    members(name) {
      const { members } = of(name)
      for (const [id, { expiresMs }] of members) if (expiresMs <= Date.now()) members.delete(id)
      return [...members.values()].map(({ id, text }) => ({ id, text }))
    },
  }
}
