import { readFileSync, statSync } from 'node:fs'
import { dirname, posix } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { MarkdownEnv, MarkdownRenderer } from 'vitepress'

const root = fileURLToPath(new URL('../../', import.meta.url))

const manifest = JSON.parse(readFileSync(`${root}package.json`, 'utf8'))

/** Address of the repository, from `repository` of the root's package.json. */
export const repository: string = manifest.repository.url.replace(/^git\+|\.git$/g, '')

/** Address of the site, from `homepage` there. */
export const home: URL = new URL(manifest.homepage)

/** Turns links to files outside of `docs/` into links to the repository. */
export function linkRepository(markdown: MarkdownRenderer): void {
  markdown.core.ruler.push('repository-links', ({ tokens, env }) => {
    const { relativePath }: MarkdownEnv = env
    for (const token of tokens.flatMap(({ children }) => children ?? [])) {
      const href = token.type === 'link_open' ? token.attrGet('href') : null
      if (href !== null) token.attrSet('href', resolveLink(relativePath, href))
    }
  })
}

/** Returns the address of a page's link: in the repository if it leaves `docs/`. */
export function resolveLink(page: string, href: string): string {
  if (!href.startsWith('.')) return href
  const path = posix.join('docs', dirname(page), href)
  if (path.startsWith('docs/')) return href
  const kind = statSync(root + path.replace(/#.*/, '')).isDirectory() ? 'tree' : 'blob'
  return `${repository}/${kind}/main/${path}`
}
