import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { errorCodes } from '../../packages/core/src/options/errors.ts'
import {
  filesUnder,
  packages,
  readManifest,
  readText,
  root,
  type Workspace,
  workspaces,
} from '../support/workspace.ts'

/** Home and work folders of a machine; route examples such as `/users/42` are not meant. */
const MACHINE_PATH = /(?<![\w.$})-])\/(?:home|Users|root|work)\/[A-Za-z_.][\w.-]*|\b[A-Z]:\\Users\\/

it('the lock file names no registry host, so that installs use the registry of the machine', () => {
  const { packages } = JSON.parse(readText('package-lock.json')) as {
    packages: Record<string, { resolved?: string }>
  }
  const remote = Object.entries(packages)
    .filter(([, { resolved }]) => resolved !== undefined && /^[a-z+]+:/i.test(resolved))
    .map(([path]) => path)
  expect(remote).toEqual([])
})

describe('the workspaces', () => {
  it('depend on each other at exactly their common version', () => {
    const all = workspaces()
    const versions = new Map(all.map(({ manifest }) => [manifest.name, manifest.version]))
    const stale = all.flatMap((workspace) =>
      dependenciesOf(workspace)
        .filter(([name, range]) => versions.has(name) && versions.get(name) !== range)
        .map(([name, range]) => `${workspace.folder} wants ${name} ${range}`),
    )
    expect(stale).toEqual([])
  })

  it('carry one version, because they are released together', () => {
    const published = workspaces().filter(({ manifest }) => manifest.private !== true)
    expect(new Set(published.map(({ manifest }) => manifest.version)).size).toBe(1)
  })
})

it.each(filesUnder('.github/workflows', '.yml'))(
  'the workflow %s pins its actions by hash, and gives each job the permissions that it needs',
  (file) => {
    const text = readText(file)
    const uses = text.match(/(?<=uses: ).*/g) ?? []
    expect(uses.filter((action) => !/@[0-9a-f]{40} # v\d+\.\d+\.\d+$/.test(action))).toEqual([])
    expect(text).toMatch(/^permissions: \{\}$/m)
    const jobs = text.slice(text.indexOf('\njobs:')).match(/^ {2}[\w-]+:$/gm) ?? []
    expect(text.match(/^ {4}permissions:$/gm)).toHaveLength(jobs.length)
  },
)

it.each(packages())(
  'the package in $folder ships the licence and a README of its own',
  ({ folder, manifest }) => {
    expect(readText(`${folder}/LICENSE`)).toBe(readText('LICENSE'))
    expect(readText(`${folder}/README.md`)).toMatch(new RegExp(`^# ${manifest.name}\n`))
  },
)

describe('each page of a package on npm', () => {
  const { homepage = '' } = readManifest('.')

  it.each(packages())(
    '$folder describes itself, and links to the site, the sources and the issues',
    ({ manifest }) => {
      for (const field of ['homepage', 'repository', 'bugs']) {
        expect(manifest).not.toHaveProperty(field)
      }
      expect(manifest.keywords).toContain('rate-limit')
      expect(manifest.description).toMatch(/^\S.{20,}[^.]$/)
    },
  )

  it.each(packages())(
    '$folder is self-contained: installation, an example, its guide',
    ({ folder, manifest }) => {
      const readme = readText(`${folder}/README.md`)
      expect(readme).toMatch(new RegExp(`^npm install .*${manifest.name}\\b`, 'm'))
      expect(readme).toMatch(/^```(ts|yaml|sh)\n(?!npm install)/m)
      expect(readme).not.toMatch(/\]\(\.|`docs\//)
      const links = [...readme.matchAll(/\]\((\S+?)\)/g)].map(([, link = '']) => link)
      const pages = links.filter((link) => link.startsWith(homepage)).map(pageOf)
      expect(pages.filter((page) => !existsSync(root + page))).toEqual([])
      expect(pages).toContain('docs/index.md')
      expect(pages.length).toBeGreaterThan(2)
    },
  )

  /** The source of a page of the site: of an API page the package. */
  function pageOf(link: string): string {
    const path = link.slice(homepage.length).replace(/#.*/, '')
    if (path.startsWith('api/@sluice/'))
      return path.replace(/^api.@sluice(.*)\.html$/, 'packages$1')
    return `docs/${path.replace(/(^|\/)$/, '$1index.html').replace('.html', '.md')}`
  }
})

describe('the files', () => {
  it('contain no path of the machine they were written on', () => {
    const listed = execFileSync('git', ['ls-files', '-z', '-co', '--exclude-standard'], {
      cwd: root,
      encoding: 'utf8',
    })
    const guilty = [...new Set(listed.split('\0'))]
      .filter((file) => file !== '')
      .flatMap((file) => {
        const match = MACHINE_PATH.exec(textOf(file))
        return match ? [`${file}: ${match[0]}`] : []
      })
    expect(guilty).toEqual([])
  })

  it('name the repository and the site as package.json does', () => {
    const { repository, homepage } = readManifest('.')
    const known = [repository?.url.replace(/^git\+|\.git$/g, ''), homepage?.replace(/\/$/, '')]
    const pages = ['docs', 'packages', '.github'].flatMap((folder) => [
      ...filesUnder(folder, '.md'),
      ...filesUnder(folder, '.yml'),
      ...filesUnder(folder, '.ts'),
    ])
    const address = /https:\/\/(github\.com\/[\w-]+|[\w-]+\.github\.io)\/sluice\b/g
    const foreign = pages.flatMap((page) =>
      (readText(page).match(address) ?? [])
        .filter((url) => !known.includes(url))
        .map((url) => `${page}: ${url}`),
    )
    expect(foreign).toEqual([])
  })

  it('would be detected', () => {
    expect(MACHINE_PATH.test(['', 'home', 'ada', 'sluice'].join('/'))).toBe(true)
    expect(MACHINE_PATH.test(`from '${['', 'root', 'code'].join('/')}'`)).toBe(true)
    expect(MACHINE_PATH.test('GET /users/42 and /api/root/7')).toBe(false)
  })
})

function dependenciesOf({ manifest }: Workspace): [string, string][] {
  const { dependencies, devDependencies, peerDependencies, optionalDependencies } = manifest
  return [dependencies, devDependencies, peerDependencies, optionalDependencies].flatMap((group) =>
    Object.entries(group ?? {}),
  )
}

function textOf(file: string): string {
  try {
    return readFileSync(root + file, 'utf8')
  } catch {
    // Listed by git and deleted in the working tree: nothing to read.
    return ''
  }
}

// The build of the site checks the links of its pages.
describe('the site', () => {
  /** Without those that are written from types. */
  const pages = filesUnder('docs', '.md').filter((page) => !page.startsWith('docs/api/'))

  it('is at most 450 KB', () => {
    const bytes = pages.reduce((sum, page) => sum + Buffer.byteLength(readText(page)), 0)
    expect(bytes).toBeLessThanOrEqual(450 * 1024)
  })

  it('has each page in its sidebar', () => {
    const sidebar = readText('docs/.vitepress/sidebar.ts')
    const hidden = pages
      .map((file) => file.slice('docs'.length, -'.md'.length))
      .filter((page) => page !== '/index')
      .map((page) => page.replace(/index$/, ''))
      .filter((page) => !sidebar.includes(`'${page}'`) && !sidebar.includes(`'${page}#`))
    expect(hidden).toEqual([])
  })

  it('explain every code of errors, and none that does not exist', () => {
    const explained = [...readText('docs/errors.md').matchAll(/^\| `(\w+)` +\|/gm)]
    expect(explained.map(([, code]) => code)).toEqual(Object.keys(errorCodes))
  })
})
