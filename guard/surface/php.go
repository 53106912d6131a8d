package surface

// phpEntries returns the rows of this file. PHP and composer.
func phpEntries() []Entry {
	return []Entry{
		{
			ID:        "php-composer",
			Title:     "composer's package and scripts",
			Ecosystem: "php",
			Patterns:  anywhere("composer.json"),
			Trigger:   "composer install/update/dump-autoload",
			Why:       "what counts: scripts, plugins, autoload.files, repositories; edited with dependencies: judge by key",
			Source:    "https://getcomposer.org/doc/articles/scripts.md",
			Balanced:  Review,
			Keys: []string{
				"scripts.*", "scripts-descriptions", "autoload.files", "autoload-dev.files",
				"repositories", "config.allow-plugins", "config.bin-dir", "config.vendor-dir",
				"extra.*", "bin",
			},
		},
		{
			ID:        "php-composer-lock-vendor",
			Title:     "composer's lock and loader",
			Ecosystem: "php",
			Patterns:  anywhere("composer.lock", "vendor/autoload.php", "vendor/composer/**", "vendor/bin/**"),
			Trigger:   "any php entry point",
			Why:       "what counts: dist url; generated autoloader; changes with dependencies",
			Source:    "https://getcomposer.org/doc/01-basic-usage.md",
			Strict:    Note,
			Balanced:  Note,
		},
		{
			ID:        "php-phpunit",
			Title:     "phpunit's configuration",
			Ecosystem: "php",
			Patterns:  anywhere("phpunit.xml", "phpunit.xml.dist", "phpunit.dist.xml"),
			Trigger:   "phpunit, editor test explorer",
			Why:       "what counts: bootstrap, extensions, php ini; an agent rarely has to change it",
			Source:    "https://docs.phpunit.de/en/11.5/configuration.html",
			Balanced:  Review,
			Keys: []string{
				"@bootstrap", "extensions", "php.ini", "php.env", "listeners", "@cacheResultFile",
			},
		},
		{
			ID:        "php-tool-configs",
			Title:     "configuration of PHP tools",
			Ecosystem: "php",
			Patterns: anywhere(
				".php-cs-fixer.php", ".php-cs-fixer.dist.php", ".php_cs", "phpstan.neon",
				"phpstan.neon.dist", "phpstan.dist.neon", "psalm.xml", "rector.php", "ecs.php",
				"phpbench.json", "behat.yml", "codeception.yml", "deptrac.yaml", "infection.json5",
				"pint.json", "castor.php", "deploy.php",
			),
			Trigger:  "lint/analysis, editor",
			Why:      "what counts: PHP forms whole; phpstan bootstrapFiles, psalm plugins/autoloader; an agent rarely has to change it",
			Source:   "https://phpstan.org/config-reference#bootstrap",
			Balanced: Review,
			Keys: []string{
				"bootstrapFiles", "services", "includes", "plugins", "autoloader", "scanFiles",
			},
		},
		{
			ID:        "php-user-ini",
			Title:     "PHP's settings",
			Ecosystem: "php",
			Patterns:  anywhere(".user.ini", ".htaccess", "php.ini"),
			Trigger:   "web request through php-fpm/cgi/apache",
			Why:       "what counts: auto_prepend_file, extension, php_value; an agent rarely has to change it",
			Source:    "https://www.php.net/manual/en/configuration.file.per-user.php",
			Balanced:  Review,
			Keys: []string{
				"auto_prepend_file", "auto_append_file", "extension", "php_value", "php_admin_value",
				"AddHandler", "SetHandler",
			},
		},
		{
			ID:        "php-artisan",
			Title:     "entry points of PHP frameworks",
			Ecosystem: "php",
			Patterns: anywhere(
				"artisan", "bin/console", "wp-config.php", "wp-cli.yml", "wp-cli.local.yml",
				"drush/**",
			),
			Trigger:  "artisan/console any command; wp-cli require:",
			Why:      "what counts: whole file; an agent rarely has to change it",
			Source:   "https://make.wordpress.org/cli/handbook/references/config/",
			Balanced: Review,
		},
	}
}
